"""Sparse models of tables: fitted and judged (`fitting`), kept as JSON (`file`), shown as a page (`page`)."""
