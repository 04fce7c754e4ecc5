"""The command line: ``skpursuit --help``."""

from __future__ import annotations

try:
    from .app import main
except ModuleNotFoundError as error:
    if error.name not in ("click", "rich"):
        raise
    _missing = error.name

    def main() -> None:  # type: ignore[misc]
        """Say what is missing."""
        raise SystemExit(f"skpursuit: {_missing} is not installed; run: pip install 'skpursuit[cli]'")


__all__ = ["main"]
