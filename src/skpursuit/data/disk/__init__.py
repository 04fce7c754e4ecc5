"""X in files: `.npy` and Parquet, read tile by tile, and codes stored beside them."""
