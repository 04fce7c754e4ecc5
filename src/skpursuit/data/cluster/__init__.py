"""X on a Dask cluster: tiles and codes stay on the workers."""
