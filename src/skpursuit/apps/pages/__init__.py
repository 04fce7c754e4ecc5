"""HTML pages and texts of the terminal, from templates."""
