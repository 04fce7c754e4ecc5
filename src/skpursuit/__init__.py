"""Sparse models, found by reading a fraction of the data."""
