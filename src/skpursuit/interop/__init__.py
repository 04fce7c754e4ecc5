"""Other libraries made faster without a change to programs that use them (`patch.py`)."""
