"""``python -m skpursuit``."""

from skpursuit.apps.cli import main

if __name__ == "__main__":
    main(prog_name="skpursuit")
