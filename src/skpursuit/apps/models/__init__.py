"""Sparse models of tables: `fit_table`, `fit_out_of_core` fit, `model_file` saves, `model_page` reports."""
