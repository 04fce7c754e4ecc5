"""The file beside a results file: ``NAME.json`` says which settings and machines ``NAME.csv`` comes from."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._files import FileError, write_atomically

LARGEST = 1e300  # of the numbers that a page can show: whatever is larger was not measured


class StoreError(FileError):
    """Results that cannot be continued, or shown."""


@dataclass(frozen=True)
class Settings:
    """What lies beside results.

    Attributes
    ----------
    values : dict
        What the results depend on beside their cells: texts, numbers, yes or no.
    about : list of dict
        The machines and versions of all runs.
    """

    values: dict[str, Any]
    about: list[dict[str, Any]]


def digest(value: Any) -> str:
    """Return a short fingerprint of a JSON value; the order of keys does not count."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def settings_path(results: Path) -> Path:
    """Return where the settings of a results file are kept."""
    return results.with_suffix(".json")


def read_settings(results: Path) -> Settings | None:
    """Read and check what lies beside a results file; None if nothing does.

    Raises
    ------
    StoreError
        If it cannot be read, or `write_settings` did not write it.
    """
    path = settings_path(results)
    remedy = f"use another folder, or delete it and {results.name}"
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(path, f"the settings cannot be read ({error.strerror})", remedy) from None
    except (ValueError, RecursionError):
        raise StoreError(path, "the settings cannot be read: this is not JSON", remedy) from None
    if not _is_whole(stored):
        raise StoreError(path, "these are not settings that `skpursuit reproduce` wrote", remedy)
    return Settings(stored["settings"], stored["about"])


def write_settings(results: Path, settings: Settings) -> None:
    """Write what `read_settings` reads."""
    content = {"settings": settings.values, "fingerprint": digest(settings.values), "about": settings.about}
    write_atomically(settings_path(results), json.dumps(content, indent=2) + "\n")


def lost_settings(results: Path) -> StoreError:
    """Return the error for results without settings: nobody knows what they are of."""
    side = settings_path(results).name
    problem = f"it holds results, but {side} with their settings is gone"
    return StoreError(results, problem, f"bring {side} back, use another folder, or delete the file")


def _is_whole(stored: Any) -> bool:
    if not isinstance(stored, dict) or not {"settings", "fingerprint", "about"} <= set(stored):
        return False
    settings, about = stored["settings"], stored["about"]
    whole = _is_flat(settings) and isinstance(about, list) and all(map(_is_flat, about))
    return whole and stored["fingerprint"] == digest(settings)


def _is_flat(value: Any) -> bool:
    """Whether this is a JSON object of single values, as the page shows them."""
    return isinstance(value, dict) and all(map(_is_single, value.values()))


def _is_single(value: Any) -> bool:
    return (
        abs(value) < LARGEST if isinstance(value, (int, float)) else value is None or isinstance(value, str)
    )
