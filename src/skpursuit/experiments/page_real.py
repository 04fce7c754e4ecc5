"""Sections of the report on sound and text."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

from .methods import label
from .page_toy import judged
from .paper import AUDIO, CLAIMS, TEXT
from .parts import Cell, Content, Note, Section, Table
from .store import Row
from .summary import mean, methods_of, numbers, pick, speed, weighted

STAND_IN = (
    "These data are generated: they stand in for real ones, and say nothing about {}. "
    "Use `--data` for real ones."
)


def audio_section(rows: Sequence[Row], settings: dict[str, Any]) -> Section:
    """The table of errors and times."""
    pieces = sum(int(n) for n in numbers(pick(rows, method="exact"), "count"))
    name = settings["recording"]
    generated = name.startswith("generated")
    table = Table(
        f"{pieces} pieces of 1024 samples, {rows[0]['atoms']} atoms, k = 10",
        "Means over pieces, ± one standard deviation. X read: in an iteration. The coder codes all pieces "
        "at once.",
        ("Method", "paper", "here", "paper", "here", "paper", "here", "X read (%)", "atoms of exact (%)"),
        [_audio_row(method, rows) for method in methods_of(rows)],
        (("", 1), ("‖y − ŷ‖ / ‖y‖", 2), ("seconds per signal", 2), ("times faster than exact", 2), ("", 2)),
    )
    items: list[Any] = [Note(STAND_IN.format("music"))] if generated else []
    text = [
        CLAIMS["audio"],
        f"Here: {name}; atoms learned from these pieces (`DictionaryLearner`, four passes); ten iterations, "
        "thirty for `3k`. The paper's times faster are against its accumulated rows, ours against BLAS.",
    ]
    return Section("Sound", text, [*items, table])


def _audio_row(method: str, rows: Sequence[Row]) -> list[Content | Cell]:
    own, exact = pick(rows, method=method), pick(rows, method="exact")
    said = AUDIO.get(method)
    read, same = weighted(own, "share_read"), weighted(own, "same_atoms")
    error, spread = _error(own)
    base = AUDIO["rows"][2]
    return [
        label(method),
        None if said is None else f"{said[0]:.3f} ± {said[1]:.2f}",
        f"{error:.3f} ± {spread:.2f}",
        None if said is None else said[2],
        weighted(own, "seconds"),
        None if said is None else base / said[2],
        judged(speed(own, exact)),
        None if read is None else 100 * read,
        None if same is None else 100 * same,
    ]


def _error(rows: Sequence[Row]) -> tuple[float, float]:
    error, square = weighted(rows, "error") or 0.0, weighted(rows, "error_square") or 0.0
    return error, sqrt(max(0.0, square - error**2))


def text_section(rows: Sequence[Row], settings: dict[str, Any]) -> Section:
    """Accuracy and time, a table for each collection."""
    names = list(dict.fromkeys(str(row["collection"]) for row in rows))
    items: list[Any] = [Note(STAND_IN.format("text"))] if settings["generated"] else []
    items += [_collection(name, pick(rows, collection=name)) for name in names]
    text = [
        CLAIMS["text"],
        "k is chosen among 10, 50, 100 and 250 (10 and 50 for stand-ins) on half of the training part; at "
        "most 25 iterations. "
        "Seconds are those of the last fit. X is sparse here: exact is the sparse product, which reads the "
        "stored "
        "entries alone, and X read is a share of those.",
    ]
    return Section("Text", text, items)


def _collection(name: str, rows: Sequence[Row]) -> Table:
    splits = len({row["split"] for row in rows})
    said = TEXT.get(name, {})
    first = rows[0]
    return Table(
        f"{name}: {first['n_train']} training documents, {first['d']} words",
        f"Means over {splits} split(s), ± one standard deviation. All classes: one problem per class, "
        "largest wins.",
        ("Method", "paper", "here", "all classes", "paper", "here", "than exact", "X read (%)", "k"),
        [_text_row(method, rows, said) for method in methods_of(rows)],
        (("", 1), ("accuracy (%)", 3), ("seconds", 2), ("times faster", 1), ("", 2)),
    )


def _text_row(method: str, rows: Sequence[Row], said: dict[str, tuple[float, float]]) -> list[Content | Cell]:
    own = pick(rows, method=method)
    hits = [100 * value for value in numbers(own, "accuracy")]
    middle = sum(hits) / len(hits)
    spread = sqrt(sum((hit - middle) ** 2 for hit in hits) / len(hits))
    exact = mean(pick(rows, method="exact"), "accuracy")
    lost = exact is not None and middle < 100 * exact - 1.0
    paper = said.get(method)
    read, all_classes = mean(own, "share_read"), mean(own, "accuracy_all")
    return [
        label(method),
        None if paper is None else paper[0],
        Cell(
            f"{middle:.1f} ± {spread:.1f}",
            "bad" if lost else "",
            "more than a point below exact" if lost else "",
        ),
        None if all_classes is None else 100 * all_classes,
        None if paper is None else paper[1],
        mean(own, "seconds"),
        judged(speed(own, pick(rows, method="exact"))),
        None if read is None else 100 * read,
        mean(own, "k"),
    ]
