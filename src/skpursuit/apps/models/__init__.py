"""Sparse models of tables: `fit_table` fits, `model_file` saves, `model_page` reports."""
