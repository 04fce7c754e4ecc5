"""For the time of the move: the verbs of designs under the names other packages still use."""

from __future__ import annotations

from typing import Any

import numpy as np

from skpursuit.data.codes import Codes
from skpursuit.data.grams import Grams
from skpursuit.data.kept import ColumnCache


class OldCodes(Codes):
    """Codes that do not count products."""

    def multiplying(self, v: Any) -> Any:
        before = vars(self.design.reads).copy()
        end = super().multiplying(v)
        vars(self.design.reads).update(before)
        return end

    def estimate_cost(self) -> Any:
        return self.coded.cost("estimate_cost")


class OldNames(Grams):
    """Old verbs."""

    def correlate(self: Any, r: Any, cols: Any = None, rows: Any = None) -> Any:
        return self.product(r, rows) if cols is None else self.dots(cols, r)

    def correlate_error(self: Any, r: Any) -> Any:
        return self.product_error(r)

    def accumulate(self: Any, rows: Any, weights: Any, out: Any, cols: Any = None) -> Any:
        self.add_rows(rows, weights, out, cols)

    def accumulate_error(self: Any, r: Any) -> Any:
        return self.sum_error(r)

    def pick(self: Any, rows: Any, cols: Any) -> Any:
        return self.entries(rows, cols)

    def pick_cost(self: Any, rows: Any, cols: Any) -> Any:
        return self.entries_cost(rows, cols)

    def has_twin(self: Any) -> bool:
        return self.has_codes

    def twin(self: Any, seed: Any = None, fine: bool = False, steps: bool = False) -> Any:
        return self.codes(seed, fine, steps).coded.only

    def sketch(self: Any) -> Any:
        return self.bits().packed

    def is_prepared(self: Any, kind: str) -> bool:
        return None in self.store.kept.codes if kind == "twin" else self.store.kept.bits is not None

    def sketch_estimate(self: Any, r: Any) -> Any:
        return self.bits().estimate(r)

    def sketch_refine(self: Any, r: Any, cols: Any) -> Any:
        return self.bits().refine(r, cols)

    def estimate(
        self: Any, r: Any, seed: Any = None, log_delta: Any = None, cols: Any = None
    ) -> tuple[Any, Any]:
        return self.codes(seed).estimate(r, log_delta, cols)

    def estimate_rows(self: Any, r: Any, parts: Any) -> tuple[Any, Any]:
        return self.codes(steps=True).rows(r, parts)

    def refine(self: Any, r: Any, cols: Any, seed: Any = None) -> tuple[Any, Any]:
        return self.codes(seed, fine=True).refine(r, cols)

    def decoded(self: Any) -> Any:
        if not self.has_codes:
            return None
        codes = OldCodes(self, None, False, False)
        if not codes.can_multiply:
            return None
        held = vars(self.kept).get("_decoded")
        if held is None or held.coded is not codes.coded:
            vars(self.kept)["_decoded"] = held = codes
        return held

    def blocks(self: Any, cols: Any) -> Any:
        return self.look_at(cols)

    def fetch(self: Any, cols: Any, likely: Any) -> None:
        self._sweep(cols, likely())

    def norm_range(self: Any) -> Any:
        return self.size_range

    def column_sizes(self: Any) -> Any:
        return self.sizes

    def is_intercept(self: Any, cols: Any) -> Any:
        cols = np.asarray(cols)
        return np.zeros(len(cols), dtype=bool) if self.constant is None else cols == self.constant

    def lost(self: Any, cols: Any) -> Any:
        return self.noise_floor(cols)

    def product_unit(self: Any) -> float:
        return self.unit

    def prepare_rows(self: Any) -> None:
        self.prepare("rows")

    def prepare_entries(self: Any) -> None:
        self.prepare("entries")

    def row_layout_bytes(self: Any) -> int:
        return self.store.layout_bytes("rows")

    def memory_estimate(self: Any, selector: Any = "auto") -> int:
        from skpursuit.selectors import as_selector

        return as_selector(selector).nbytes(self)

    def check_unchanged(self: Any) -> None:
        self.store.check_unchanged()

    def fingerprint(self: Any) -> str:
        return self.identity()

    def counted(self: Any) -> Any:
        return self.for_run()

    @property
    def cache(self: Any) -> dict[Any, Any]:
        return vars(self.kept).setdefault("_old_cache", {})

    @property
    def column_cache(self: Any) -> ColumnCache:
        return self.kept.columns

    @property
    def gram_cache(self: Any) -> ColumnCache:
        return self.kept.gram_columns

    @property
    def code_products(self: Any) -> Any:
        return self.kept.products

    def _gather_columns(self: Any, cols: Any) -> Any:
        return self._gather(cols, lambda *_: None)
