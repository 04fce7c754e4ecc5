"""The command line: ``skpursuit --help``."""

from __future__ import annotations

try:
    from .app import main
except ModuleNotFoundError as error:
    if error.name != "click":
        raise

    def main(**options: object) -> None:  # type: ignore[misc]
        """Say what is missing."""
        raise SystemExit("skpursuit: click is not installed; run: pip install 'skpursuit[cli]'")


__all__ = ["main"]
