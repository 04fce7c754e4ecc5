"""The experiments: their grids, and one cell of each on something small."""

import base64
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from skpursuit import OMP, CoSaMP, as_design, datasets, minimize
from skpursuit.apps.studies import audio, synthetic, text
from skpursuit.apps.studies.grid import run_experiment
from skpursuit.apps.studies.loaders import AudioRecording, make_music, make_text
from skpursuit.apps.studies.methods import (
    DECLARED,
    METHODS,
    RESULT_COLUMNS,
    FixedIterationCoSaMP,
    RowExact,
    encode_columns,
    load_selector,
    make_selector,
    runs,
    stochastic,
)
from skpursuit.apps.studies.results import read_results, settings_digest
from skpursuit.apps.studies.statistics import common_problems, curves, ratios
from skpursuit.apps.studies.studies import STUDIES, StudyOptions
from skpursuit.apps.tables import TableError
from skpursuit.selectors import Query

TOY = {"n": 60, "d": 120, "k": 4, "trial": 0}


@pytest.fixture
def tiny(monkeypatch):
    """Data small enough for a test."""
    notes = make_music(24, 256, random_state=0)
    documents = make_text(150, 400, 4, random_state=0)
    monkeypatch.setattr(audio, "recording", lambda data: notes)
    monkeypatch.setattr(text, "collections", lambda data: {"tiny": documents})
    audio.learned.cache_clear()
    yield
    monkeypatch.undo()
    audio.learned.cache_clear()


@pytest.mark.parametrize("name", ["omp", "cosamp", "budget", "scaling", "fw", "families"])
@pytest.mark.parametrize("full", [False, True])
def test_cells_are_different_plain_values_of_known_methods(name, full):
    experiment = STUDIES[name](StudyOptions(full=full, trials=2))
    cells = [dict(cell) for cell in experiment.cells]
    assert len({settings_digest(cell) for cell in cells}) == len(cells)
    assert json.loads(json.dumps(cells)) == cells
    assert {cell["method"] for cell in cells} <= set(METHODS)
    assert {"exact", "halving"} <= {cell["method"] for cell in cells}
    assert all(set(cell) <= set(experiment.columns) for cell in cells)
    assert {cell["snr"] for cell in cells} == ({30.0} if name == "families" else {3.0, 30.0})


def test_more_trials_keep_the_cells_of_fewer():
    few, many = (STUDIES["omp"](StudyOptions(trials=t)).cells for t in (1, 3))
    assert {settings_digest(c) for c in few} < {settings_digest(c) for c in many}


def test_full_grids_have_the_sizes_of_the_paper():
    shapes = {(c["n"], c["d"]) for c in STUDIES["omp"](StudyOptions(full=True)).cells}
    assert shapes == {(2000, 4000), (5000, 10000)}
    fw = STUDIES["fw"](StudyOptions(full=True)).cells
    assert {(c["n"], c["d"], c["k"], c["iteration_limit"]) for c in fw} == {(2000, 4000, 50, 5000)}
    assert len({c["trial"] for c in fw}) == 20
    slow = [c for c in fw if c["method"] == "reject"]
    assert len(slow) == 2 * 2
    assert all(c["budget"] < 0.01 for c in slow)
    assert {"exact", "exact-k", "rows", "rows-k", "stoch"} <= {
        c["method"] for c in STUDIES["cosamp"](StudyOptions(full=True)).cells
    }


def test_every_method_that_is_named_is_run_where_it_can_be():
    cells = STUDIES["omp"](StudyOptions(methods=("gram", "lucb", "stoch"), snr=(20.0,))).cells
    assert {cell["method"] for cell in cells} == {"exact", "gram", "lucb"}
    assert {cell["snr"] for cell in cells} == {20.0}
    assert not runs("omp", "grasp")
    assert runs("text", "grasp")
    assert not runs("race", "gram")


@pytest.mark.parametrize("family", DECLARED["families"]["designs"])
def test_families_of_x_have_unit_columns_and_the_noise_asked_for(family):
    cell = {"n": 300, "d": 60, "k": 5, "trial": 0, "snr": 20.0, "design": family}
    X, y, w = synthetic.toy(synthetic.place_of(cell))
    assert np.linalg.norm(X, axis=0) == pytest.approx(1.0)
    ratio = np.sum((X @ w) ** 2) / np.sum((y - X @ w) ** 2)
    assert 10 * np.log10(ratio) == pytest.approx(20.0, abs=1.0)
    neighbours = np.median(np.sum(X[:, 1:] * X[:, :-1], axis=0))
    assert neighbours == pytest.approx({"correlated": 0.9, "coherent": 0.8}.get(family, 0.0), abs=0.1)


def test_noise_of_another_size_is_the_same_noise():
    (X, y, w), (X2, y2, w2) = (synthetic.toy((50, 80, 3, 1, snr, "")) for snr in (3.0, 23.0))
    assert (X == X2).all()
    assert (w == w2).all()
    assert y - X @ w == pytest.approx(10 * (y2 - X @ w2))


def test_printed_methods_follow_the_paper():
    stop = make_selector("greedy-printed", stability=7).stop
    assert (stop.rows, stop.check_every) == (7, 1)
    assert make_selector("halving-draws").order == "draws"
    assert make_selector("halving-printed").exact_fraction == 0
    assert stochastic("stoch", 10, 4).batch_size == 1
    assert stochastic("stoch-batch-3k", 10, 4).batch_size is None
    assert stochastic("stoch-batch-3k", 10, 4).max_iter == 12
    assert isinstance(text.text_solver("rows-printed", 50, 100), FixedIterationCoSaMP)
    assert (
        text.text_solver("rows-printed", 50, 100).max_iter,
        text.text_solver("rows", 50, 100).max_iter,
    ) == (50, 25)


def test_columns_are_kept_in_their_order():
    columns = np.array([300, 7, 65535])
    assert np.frombuffer(base64.b64decode(encode_columns(columns, 65536)), "<u2").tolist() == columns.tolist()
    assert np.frombuffer(base64.b64decode(encode_columns(columns, 65537)), "<u4").tolist() == columns.tolist()
    cell = {**TOY, "snr": 30.0, "method": "exact", "stability": 0.02, "budget": 0.2}
    (exact,), (rows,) = (synthetic.run_omp({**cell, "method": method}) for method in ("exact", "rows"))
    X, y, _ = synthetic.toy(synthetic.place_of(cell))
    found = np.frombuffer(base64.b64decode(exact["columns"]), "<u2")
    assert found.tolist() == minimize(X, y, OMP(4), "exact").support.tolist()
    assert rows["columns"] is None
    assert (rows["precision"], rows["jaccard"]) == (1.0, 1.0)


def test_second_looks_are_counted_apart():
    cell = {**TOY, "method": "uniform", "iteration_limit": 60, "stability": 0.02}
    (ours,), (printed,) = (synthetic.run_fw({**cell, "method": m}) for m in ("uniform", "uniform-printed"))
    assert 0 < ours["second_looks"] < 1
    assert printed["second_looks"] == 0
    assert printed["iterations"] == 60


@pytest.mark.parametrize("kind", ["success", "envelope", "pursuit"])
def test_theory_cells_hold_what_is_promised(kind):
    experiment = STUDIES["theory"](StudyOptions())
    cells = [cell for cell in experiment.cells if cell["kind"] == kind and cell.get("x", 0) <= 8]
    assert json.loads(json.dumps(cells)) == cells
    for cell in (cells[0], cells[-1]):
        rows = experiment.run(
            {**cell, "repeats": 20} if kind == "success" else {**cell, "n": 40, "d": 80, "k": 3}
        )
        assert all({**cell, **row}.keys() <= set(experiment.columns) for row in rows)
        assert all(0 <= row["measured"] <= 1 for row in rows)
        assert all(row.get("margin", 0) >= -0.02 for row in rows)


def test_accumulated_rows_are_exact_and_read_only_rows_that_matter():
    rng = np.random.default_rng(0)
    X, r = rng.standard_normal((30, 50)), rng.standard_normal(30)
    r[10:] = 0.0
    design = as_design(X)
    answer = RowExact().select(design, Query(r, 5))
    assert answer.certificate == "exact"
    assert answer.columns.tolist() == np.argsort(-np.abs(X.T @ r))[:5].tolist()
    assert answer.entries_read == 10 * 50


def test_fixed_iterations_go_on_where_cosamp_has_settled():
    X, y, _ = datasets.make_sparse_signal(80, 160, 5, random_state=0)
    settled = minimize(X, y, CoSaMP(n_nonzero_coefs=5, max_iter=40), "exact")
    patient = minimize(X, y, FixedIterationCoSaMP(n_nonzero_coefs=5, max_iter=40), "exact")
    assert settled.n_iter < 40 == patient.n_iter


def test_every_method_has_a_selector():
    for name in METHODS.keys() - {"coder", "grasp", "grasp-halving"}:
        assert hasattr(make_selector(name), "find"), name


OMP_METHODS = ["exact", "rows", "halving", "uniform", "reject"]
COSAMP_METHODS = ["exact", "rows", "exact-k", "rows-k", "greedy", "halving", "stoch", "stoch-batch"]
TOY_CELLS = [
    *((synthetic.run_omp, method) for method in OMP_METHODS),
    *((synthetic.run_cosamp, method) for method in COSAMP_METHODS),
    *((synthetic.run_fw, method) for method in ("exact", "bound", "gram", "halving")),
]


@pytest.mark.parametrize(("run", "method"), TOY_CELLS)
def test_toy_cells(run, method):
    (row,) = run({**TOY, "method": method, "stability": 0.02, "budget": 0.2, "iteration_limit": 30})
    assert set(row) == set(list(RESULT_COLUMNS["toy"])[10:])
    assert 0 <= row["f_measure"] <= 1
    assert row["iterations"] <= 30
    if run is synthetic.run_omp or method.endswith("-k"):
        assert row["iterations"] == 4
    if method in ("exact", "rows", "gram"):
        assert row["same_atoms"] == 1.0
        assert run is not synthetic.run_omp or row["entries_read"] == pytest.approx(4 * 60 * 120, rel=0.1)


@pytest.mark.parametrize("method", ["exact", "halving", "stoch-3k", "grasp"])
def test_text_cells(tiny, method):
    (row,) = text.run_text({"collection": "tiny", "split": 0, "method": method})
    assert row["n_train"] == 120
    assert row["k"] in text.STAND_IN_SIZES
    assert 0.4 <= row["accuracy"] <= 1
    assert ("accuracy_all" in row) == (method in text.ALL_CLASSES)
    assert set(row) <= set(tuple(RESULT_COLUMNS["text"]))


def test_splits_do_not_share_documents():
    train, test, first, second = text.splits(100, 3)
    assert (len(train), len(test), len(first), len(second)) == (80, 20, 40, 40)
    assert sorted([*train, *test]) == list(range(100))
    assert sorted([*first, *second]) == sorted(train)


def test_text_has_unit_rows_and_its_first_classes_are_positive(tiny, monkeypatch):
    seen = []
    result = SimpleNamespace(coef=np.ones(400), support=np.arange(3), entries_read=1, n_iter=1)
    monkeypatch.setattr(
        text.compared, "timed_fit", lambda X, y, *args, **kwargs: seen.append((X, y)) or (result, 0.1)
    )
    text.run_text({"collection": "tiny", "split": 0, "method": "rows"})
    X, y = seen[-1]
    train = text.splits(150, 0)[0]
    assert np.sqrt(X.multiply(X).sum(axis=1)) == pytest.approx(1.0)
    classes = text.collections(None)["tiny"].y[train]
    assert y.tolist() == np.where(classes < 2, 1.0, -1.0).tolist()


def test_audio_cells(tiny):
    methods = ("exact", "rows", "halving", "stoch-3k", "coder")
    rows = audio.run_audio({"first": 0, "count": 3, "atoms": 16}, None, methods)
    assert [row["method"] for row in rows] == list(methods)
    by_name = {row["method"]: row for row in rows}
    assert by_name["rows"]["error"] == pytest.approx(by_name["exact"]["error"])
    assert by_name["rows"]["same_atoms"] == 1.0
    assert by_name["exact"]["iterations"] <= 10
    assert all(0 <= row["error"] <= 1 for row in rows)
    assert all(set(row) <= set(tuple(RESULT_COLUMNS["audio"])) for row in rows)


def test_silence_is_left_out(tiny):
    audio.recording(None).pieces[1] = 0.0
    (row,) = audio.run_audio({"first": 0, "count": 3, "atoms": 16}, None, ("exact",))
    assert row["count"] == 2


def test_cells_of_nothing_but_silence_are_left_out(monkeypatch):
    pieces = np.zeros((24, 1024))
    monkeypatch.setattr(audio, "recording", lambda data: AudioRecording("r", pieces, 8000))
    with pytest.raises(TableError, match="data: its first 24 pieces are silence; give other recordings"):
        STUDIES["audio"](StudyOptions(data="data"))
    pieces[10:12] = 1.0
    assert [cell["first"] for cell in STUDIES["audio"](StudyOptions(data="data")).cells] == [8]


def test_results_of_a_run_read_back(tmp_path, tiny):
    experiment = STUDIES["text"](StudyOptions(trials=1))
    small = type(experiment)(
        "text", experiment.cells[:2], experiment.run, experiment.columns, experiment.settings
    )
    run_experiment(small, tmp_path)
    rows = read_results(tmp_path, "text").rows
    assert [row["method"] for row in rows] == ["exact", "rows"]
    assert rows[0]["accuracy"] == rows[1]["accuracy"]


LUCB = Path(__file__).parents[3] / "examples" / "lucb.py"


@pytest.mark.parametrize("name", ["omp", "cosamp", "budget", "scaling", "fw", "text", "audio"])
def test_a_selector_of_ones_own_enters_every_study(tiny, name):
    own = {"LUCB": f"{LUCB}:LUCB"}
    every = STUDIES[name](StudyOptions(trials=1, user_selectors=own))
    few = STUDIES[name](StudyOptions(trials=1, user_selectors=own, methods=("halving", "LUCB")))
    assert few.settings["selector LUCB"] == every.settings["selector LUCB"]
    if name != "audio":
        assert "LUCB" in {cell["method"] for cell in every.cells}
        assert {cell["method"] for cell in few.cells} == {"exact", "halving", "LUCB"}
        cell = next(cell for cell in few.cells if cell["method"] == "LUCB")
        if name in ("omp", "text"):
            rows = few.run({**cell, **TOY} if name == "omp" else cell)
            assert rows[0]["entries_read"] > 0
    else:
        rows = few.run({"first": 0, "count": 2, "atoms": 16})
        assert [row["method"] for row in rows] == ["exact", "halving", "LUCB"]


def test_a_race_holds_the_methods_that_record_their_rounds_and_ends_in_their_answer(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from skpursuit.selectors import Selector\nclass Silent(Selector):\n    def find(self, d, q): ..."
    )
    own = {"LUCB": f"{LUCB}:LUCB", "Silent": f"{tmp_path / 'mine.py'}:Silent"}
    experiment = STUDIES["race"](
        StudyOptions(user_selectors=own, methods=("certified", "halving", "LUCB", "lucb", "Silent"))
    )
    assert [cell["method"] for cell in experiment.cells] == ["halving", "LUCB", "lucb"]
    for cell in experiment.cells:
        rows = experiment.run({**cell, "n": 3000, "d": 60, "k": 3})
        assert len(rows) > 3
        assert rows == sorted(rows, key=lambda row: row["rows_read"])
        assert rows[-1]["rank"] == 1
        assert rows[-1]["left"] <= rows[0]["left"] <= 60
        assert cell["method"].upper() == "LUCB" or rows[-1]["left"] < 10
        assert rows[-1]["winner"] == pytest.approx(1.0, abs=0.5)
        assert all(set(row) <= set(experiment.columns) for row in rows)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("x = 3", "'x' is no Selector"),
        ("1/0", "ZeroDivisionError"),
        ("", "AttributeError"),
        ("def x(", "SyntaxError"),
    ],
)
def test_files_that_hold_no_selector(tmp_path, content, words):
    (tmp_path / "mine.py").write_text(content)
    with pytest.raises(TableError, match=words):
        load_selector(f"{tmp_path / 'mine.py'}:x")


def test_speeds_compare_the_same_problem_whatever_k_was_chosen():
    exact = [{"collection": "a", "split": s, "k": 10, "seconds": 2.0} for s in (0, 1)]
    other = [{"collection": "a", "split": s, "k": 50, "seconds": 0.5 + s} for s in (0, 1)]
    assert ratios(other, exact) == [4.0, 2.0 / 1.5]
    toys = [{"n": 1, "d": 1, "k": k, "trial": 0, "seconds": float(k)} for k in (1, 2)]
    assert ratios(toys, toys) == [1.0, 1.0]


def test_means_are_over_problems_that_all_methods_have_finished():
    def row(method, trial):
        return {"n": 1, "d": 1, "k": 1, "trial": trial, "method": method}

    whole = [row("exact", 0), row("halving", 0)]
    assert common_problems([*whole, row("exact", 1)]) == whole
    assert common_problems([*whole, row("reject", 0)]) == [*whole, row("reject", 0)]
    assert common_problems([row("exact", 0), row("halving", 1)]) == [row("exact", 0), row("halving", 1)]


def test_one_disturbed_run_does_not_move_the_line_of_times_but_shows_in_its_band():
    rows = [{"method": "exact", "k": 5, "seconds": s, "f_measure": s} for s in (1.0, 2.0, 90.0)]
    (times,), (recovery,) = (curves(rows, "k", y) for y in ("seconds", "f_measure"))
    assert (times.y, recovery.y) == ([2.0], [31.0])
    assert times.high[0] == pytest.approx(2.0 + 0.93 * 44.5 / 3**0.5)
    assert recovery.high[0] == pytest.approx(31.0 + np.std([1, 2, 90], ddof=1) / 3**0.5)
