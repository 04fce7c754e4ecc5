"""Data access: the only code that touches X."""
