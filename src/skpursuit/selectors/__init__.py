"""How the top entries of X^T r are found."""
