"""Parquet on disk: the model of the same numbers in memory, names, and errors."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import skpursuit as sk
from skpursuit.data.disk.file_store import FileStore
from tests.support.failing import fails


def table(n=3000, d=60, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.standard_normal((n, d)), columns=[f"x{j}" for j in range(d)])
    frame["flag"] = rng.random(n) < 0.5
    frame["count"] = rng.integers(0, 9, n)
    frame["town"] = "somewhere"
    frame["y"] = 3 * frame["x7"] - 2 * frame["x31"] + frame["count"] + rng.standard_normal(n)
    return frame


@pytest.mark.filterwarnings("ignore:.*row group")
@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("limit", ["1MiB", "1GB"])
def test_parquet_gives_the_model_of_the_data_frame(tmp_path, pieces, limit):
    frame = table()
    for k, part in enumerate(np.array_split(np.arange(3000), pieces)):
        frame.iloc[part].to_parquet(tmp_path / f"part{k}.parquet", row_group_size=700)
    path = tmp_path if pieces > 1 else tmp_path / "part0.parquet"
    X = frame.drop(columns=["town", "y"])
    true = sk.PursuitRegressor(n_nonzero_coefs=5).fit(X, frame["y"])
    design = sk.as_design(path, memory_limit=limit, exclude=["town", "y"])
    assert isinstance(design.store, FileStore) == (limit == "1MiB")
    for y in (frame["y"], "y"):
        ours = sk.PursuitRegressor(n_nonzero_coefs=5).fit(design, y)
        np.testing.assert_array_equal(ours.support_, true.support_)
        np.testing.assert_allclose(ours.coef_, true.coef_, rtol=1e-9)
        assert list(ours.feature_names_in_) == list(X.columns)
    np.testing.assert_allclose(ours.predict(design), true.predict(X), rtol=1e-9)
    np.testing.assert_array_equal(design.columns(np.array([60]))[0], frame["flag"].to_numpy(float))


def test_a_column_of_parquet_as_target(tmp_path):
    frame = table().drop(columns="town")
    frame.to_parquet(tmp_path / "x.parquet")
    ours = sk.minimize(tmp_path / "x.parquet", "y", sk.OMP(n_nonzero_coefs=4))
    true = sk.minimize(
        frame.drop(columns="y").to_numpy(float), frame["y"].to_numpy(), sk.OMP(n_nonzero_coefs=4)
    )
    np.testing.assert_array_equal(ours.support, true.support)
    with pytest.raises(ValueError, match="y is 'y', a column of X; leave it out"):
        sk.minimize(sk.as_design(tmp_path / "x.parquet"), "y", sk.OMP(n_nonzero_coefs=4))
    with pytest.raises(ValueError, match="y names 'z', which X does not have"):
        sk.minimize(tmp_path / "x.parquet", "z", sk.OMP(n_nonzero_coefs=4))


@pytest.mark.parametrize("limit", ["1MiB", "1GB"])
def test_predictions_find_columns_by_name(tmp_path, limit):
    frame = table().drop(columns="town")
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=512)
    frame[frame.columns[::-1]].to_parquet(tmp_path / "other.parquet", row_group_size=512)
    model = sk.PursuitRegressor(n_nonzero_coefs=5).fit(tmp_path / "x.parquet", "y")
    expected = model.predict(frame.drop(columns="y"))
    for name in ("x.parquet", "other.parquet"):  # which have the target as well
        design = sk.as_design(tmp_path / name, memory_limit=limit)
        np.testing.assert_allclose(model.predict(design), expected, rtol=1e-9)
        assert model.score(tmp_path / name, "y") == pytest.approx(
            model.score(frame.drop(columns="y"), frame["y"])
        )
    with pytest.raises(ValueError, match="the model names 'x7', which X does not have"):
        model.predict(sk.as_design(tmp_path / "x.parquet", exclude=["x7"]))


def write(frame, path, **types):
    """Write a frame with some columns in other types of Arrow."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    written = pa.Table.from_pandas(frame, preserve_index=False)
    for name, kind in types.items():
        j = written.column_names.index(name)
        written = written.set_column(j, name, written[name].cast(getattr(pa, kind)()))
    path.parent.mkdir(exist_ok=True)
    pq.write_table(written, path)


def test_files_of_a_folder_may_differ_in_the_order_and_width_of_their_columns(tmp_path):
    frame = table()[["x0", "x1", "x2"]]
    write(frame[:1000], tmp_path / "f" / "a.parquet", x0="float32", x1="float32", x2="float32")
    write(frame.loc[1000:, ["x2", "x0", "x1"]], tmp_path / "f" / "b.pq")
    (tmp_path / "f" / "._b.parquet").write_bytes(b"of another system")
    design = sk.as_design(tmp_path / "f")
    np.testing.assert_array_equal(design.columns(np.arange(3)).T[1000:], frame[1000:])
    assert design.store.names == ["x0", "x1", "x2"]
    write(frame[:5], tmp_path / "f" / "b.pq", x1="string")
    fails(r"b\.pq: columns 'x1' are not numeric", sk.as_design, tmp_path / "f")
    write(frame[:5].rename(columns={"x1": "z"}), tmp_path / "f" / "b.pq")
    fails(r"b\.pq: its columns .* \(only one of the two has 'x1'\)", sk.as_design, tmp_path / "f")


def test_parquet_with_equal_names_or_without_files_is_refused(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table([[1.0], [2.0], [3.0]], names=["a", "b", "a"]), tmp_path / "x.parquet")
    fails(r"x\.parquet: it has several columns 'a'", sk.as_design, tmp_path / "x.parquet")
    assert sk.as_design(tmp_path / "x.parquet", columns=["b"]).shape == (1, 1)
    (tmp_path / "folder.parquet" / "year=1999").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"no \.parquet file in it; folders below it are not looked at"):
        sk.as_design(tmp_path / "folder.parquet")
    np.save(tmp_path / "y.npy", np.ones(40))  # it may be y, which lies beside the pieces of X
    fails(r"y\.npy: .*two-dimensional, got 1", sk.as_design, tmp_path / "y.npy")
    fails(r"two kinds, folder\.parquet and y\.npy; .* as a list", sk.as_design, tmp_path)


@pytest.mark.filterwarnings("ignore:.*row group")
def test_parquet_that_cannot_be_used(tmp_path):
    frame = table()
    frame.to_parquet(tmp_path / "a.parquet")
    fails(r"a\.parquet: columns 'town' are not numeric.*\['town'\]", sk.as_design, tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"nothing")
    fails(r"b\.parquet: it cannot be read as Parquet", sk.as_design, tmp_path, exclude=["town"])
    frame.drop(columns="x3").to_parquet(tmp_path / "b.parquet")
    fails(r"b\.parquet: its columns are not those of .*a\.parquet", sk.as_design, tmp_path, exclude=["town"])
    frame.loc[2500, "x5"] = np.nan
    frame.to_parquet(tmp_path / "b.parquet", row_group_size=512)
    design = sk.as_design(tmp_path, memory_limit="1MiB", exclude=["town", "y"])
    fails(r"first in column 5, row 5500 \('x5'\)", sk.as_design, tmp_path, exclude=["town", "y"])
    with pytest.raises(ValueError, match=r"first in column 5, row 5500, in .*b\.parquet \('x5'\)"):
        sk.minimize(design, np.ones(6000), sk.OMP(n_nonzero_coefs=2))


def test_row_groups_that_are_large_are_told(tmp_path):
    frame = table(8000).drop(columns="town")
    frame.to_parquet(tmp_path / "large.parquet", row_group_size=8000)
    with pytest.warns(UserWarning, match=r"large\.parquet: a row group of 8000 rows takes .*=512"):
        sk.as_design(tmp_path / "large.parquet", memory_limit="2MB")
    frame.to_parquet(tmp_path / "large.parquet", row_group_size=512)
    with warnings.catch_warnings(action="error"):  # as it was advised
        sk.as_design(tmp_path / "large.parquet", memory_limit="2MB")


KINDS = {  # of labels, with the classes a classifier should know
    "text": (np.array(["no", "yes"], dtype=object), ["no", "yes"]),
    "category": (pd.Categorical(["no", "yes"]), ["no", "yes"]),
    "flag": (np.array([False, True]), [False, True]),
    "whole": (np.array([3, 7], dtype=np.int16), [3, 7]),
    "nullable": (pd.array([3, 7], dtype="Int32"), [3, 7]),
    "float": (np.array([1, 2], dtype=np.float32), [1.0, 2.0]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["file", "folder", "dask"])
@pytest.mark.filterwarnings("ignore:y is of type float64 with 2")
def test_a_column_of_labels_keeps_its_type(tmp_path, kind, where):
    rng = np.random.default_rng(0)
    frame, (values, classes) = pd.DataFrame(rng.standard_normal((600, 5)), columns=list("abcde")), KINDS[kind]
    frame["label"] = values[(frame["b"] + 0.3 * rng.standard_normal(600) > 0).to_numpy().astype(int)]
    if where == "dask":
        path = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3)
    else:
        path = tmp_path if where == "folder" else tmp_path / "0.parquet"
        for k, part in enumerate(np.array_split(np.arange(600), 3 if where == "folder" else 1)):
            frame.iloc[part].to_parquet(tmp_path / f"{k}.parquet")
    X, y = frame[list("abcde")], np.array(frame["label"].tolist())
    for model in (sk.PursuitClassifier(), sk.PursuitClassifierCV(solver="omp", cv=3)):
        ours, true = clone(model).fit(path, "label"), clone(model).fit(X, y)
        assert ours.classes_.tolist() == classes
        assert type(ours.classes_.tolist()[0]) is type(classes[0])
        np.testing.assert_allclose(ours.coef_, true.coef_, rtol=1e-7, atol=1e-9)
        assert ours.score(path, "label") == true.score(X, y)
    ours, true = (
        sk.PursuitFeatureSelector(n_features_to_select=2).fit(*data) for data in ((path, "label"), (X, y))
    )
    np.testing.assert_array_equal(ours.support_, true.support_)
    if kind in ("text", "category"):
        with pytest.raises(ValueError, match=r"y must be numbers .* for classes use a classifier"):
            sk.PursuitRegressor().fit(path, "label")
    else:
        ours, true = sk.PursuitRegressor().fit(path, "label"), sk.PursuitRegressor().fit(X, y.astype(float))
        np.testing.assert_allclose(ours.coef_, true.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("hole", [None, np.nan])
@pytest.mark.parametrize("values", [["no", "yes", "no"], [1.0, 2.0, 1.0], [True, False, True]])
def test_labels_with_holes_are_refused_by_the_name_of_their_column(tmp_path, values, hole):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 5.0], "label": [*values, hole]})
    frame.to_parquet(tmp_path / "x.parquet")
    lazy = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=2)
    for path, told in ((tmp_path / "x.parquet", "nulls"), (lazy, "missing values")):
        with pytest.raises(ValueError, match=f"column 'label', which is y, has {told}"):
            sk.PursuitClassifier().fit(path, "label")


def test_files_that_differ_in_the_type_of_the_labels_are_refused(tmp_path):
    for k, label in enumerate((["1", "2"], [1, 2])):
        pd.DataFrame({"a": [1.0, 2.0], "label": label}).to_parquet(tmp_path / f"{k}.parquet")
    with pytest.raises(ValueError, match=r"1\.parquet: column 'label' has another type than in .*0\.parquet"):
        sk.PursuitClassifier().fit(tmp_path, "label")


def test_the_index_of_a_data_frame_in_parquet_is_no_column(tmp_path):
    frame = pd.DataFrame({"x": np.arange(9.0), "z": np.ones(9)})
    for name in ("id", "__null_dask_index__", None):  # as users, Dask and pandas call it
        frame.set_index(pd.Index(range(9, 18)[::-1], name=name)).to_parquet(tmp_path / "x.parquet")
        assert sk.as_design(tmp_path / "x.parquet").store.names == ["x", "z"]


def test_a_target_of_dates_is_refused_by_its_name(tmp_path):
    frame = table().drop(columns="town").assign(when=pd.Timestamp("2026-01-01"))
    frame.to_parquet(tmp_path / "x.parquet")
    with pytest.raises(
        TypeError, match="column 'when', which is y, has dates or times; make numbers of them"
    ):
        sk.PursuitRegressor(n_nonzero_coefs=2).fit(tmp_path / "x.parquet", "when")


@pytest.mark.filterwarnings("ignore:.*row group")
@pytest.mark.parametrize("limit", ["1MiB", "1GB"])
def test_files_may_be_listed(tmp_path, limit):
    frame = table().drop(columns="town")
    for k, rows in enumerate(np.array_split(np.arange(3000), 3)):
        frame.iloc[rows].to_parquet(tmp_path / f"part{k}.parquet")
    files = [tmp_path / f"part{k}.parquet" for k in range(3)]
    listed = sk.as_design(files, memory_limit=limit, exclude=["y"])
    whole = sk.as_design(tmp_path, memory_limit=limit, exclude=["y"])
    solver = sk.OMP(n_nonzero_coefs=4)
    found = sk.minimize(listed, "y", solver)
    np.testing.assert_array_equal(found.coef, sk.minimize(whole, "y", solver).coef)
    np.testing.assert_array_equal(found.coef, sk.minimize(files, "y", solver).coef)
    assert sk.as_design(files[::-1], exclude=["y"]).columns(np.array([0]))[0][0] == frame["x0"][2000]
