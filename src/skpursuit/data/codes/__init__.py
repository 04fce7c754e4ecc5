"""X in one or two bytes per entry: estimates of X^T r with proven error bounds."""
