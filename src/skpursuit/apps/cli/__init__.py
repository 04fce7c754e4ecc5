"""The command line: ``skpursuit --help``."""

from __future__ import annotations

try:
    from . import demo, fit_predict, info, reproduce  # each adds its commands to the program
    from .program import main
except ModuleNotFoundError as error:
    if error.name != "click":
        raise

    def main(**options: object) -> None:  # type: ignore[misc]
        """Say what is missing."""
        raise SystemExit("skpursuit: click is not installed; run: pip install 'skpursuit[cli]'")


__all__ = ["demo", "fit_predict", "info", "main", "reproduce"]
