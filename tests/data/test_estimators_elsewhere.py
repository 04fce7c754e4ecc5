"""Estimators on X that is not one array in memory: the model and the errors of the same numbers in memory."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from skpursuit import OMP, PursuitClassifier, PursuitFeatureSelector, PursuitRegressor, as_design, minimize
from tests.support.failing import fails

LIMIT = "2MB"


@pytest.mark.parametrize("limit", [LIMIT, "1GB"])
@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_predictions_of_nan_are_refused(tmp_path, limit, kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 90))
    y = X[:, 7] - X[:, 30]
    bad = X.copy()
    bad[777, 30] = np.nan
    path = tmp_path / f"bad.{kind}"
    if kind == "npy":
        np.save(path, bad)
    else:
        pd.DataFrame(bad, columns=[f"x{j}" for j in range(90)]).to_parquet(path, row_group_size=512)
    design = as_design(path, memory_limit=limit, check=False)
    for model in (PursuitRegressor(n_nonzero_coefs=2), PursuitClassifier(n_nonzero_coefs=2)):
        model.fit(X, y if isinstance(model, PursuitRegressor) else y > 0)
        for ask in (
            model.predict,
            lambda X, model=model: model.score(X, model.predict(np.zeros((4000, 90)))),
        ):
            fails(r"NaN or infinity in column ('x)?30'?, which the model uses", ask, design)


def test_numbers_that_overflow_are_predicted_as_in_memory(tmp_path):
    X = np.random.default_rng(0).standard_normal((4000, 90))
    model = PursuitRegressor(n_nonzero_coefs=1).fit(X, 1e10 * X[:, 7])
    X[5, 7] = 1e300
    np.save(tmp_path / "x.npy", X)
    with np.errstate(over="ignore"):
        found = model.predict(as_design(tmp_path / "x.npy", memory_limit=LIMIT))
        np.testing.assert_array_equal(np.isinf(found), np.isinf(model.predict(X)))
    assert np.isinf(found[5])


@pytest.mark.parametrize("limit", [LIMIT, "1GB"])
def test_a_selector_transforms_what_it_was_fitted_on(tmp_path, limit):
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((4000, 90))).rename(columns=str)
    y = frame["7"] - frame["30"] + 0.1 * frame["31"]
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=512)
    np.save(tmp_path / "x.npy", frame.to_numpy())
    true = PursuitFeatureSelector(n_features_to_select=3).fit(frame, y)
    for name in ("x.npy", "x.parquet"):
        design = as_design(tmp_path / name, memory_limit=limit)
        for X in (design, tmp_path / name):
            ours = PursuitFeatureSelector(n_features_to_select=3).fit(X, y)
            np.testing.assert_array_equal(ours.transform(X), true.transform(frame))
            np.testing.assert_array_equal(ours.fit_transform(X, y), true.transform(frame))
            model = make_pipeline(PursuitFeatureSelector(n_features_to_select=3), LinearRegression()).fit(
                X, y
            )
            np.testing.assert_allclose(model.predict(X), y, atol=1e-9)
    frame[frame.columns[::-1]].to_parquet(tmp_path / "turned.parquet", row_group_size=512)
    turned = as_design(tmp_path / "turned.parquet", memory_limit=limit)
    np.testing.assert_array_equal(ours.transform(turned), true.transform(frame))  # by name
    with pytest.raises(ValueError, match="X has 89 features, but PursuitFeatureSelector is expecting 90"):
        true.transform(as_design(tmp_path / "x.npy", memory_limit=limit, exclude=[3]))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("selector", ["exact", "certified"])
def test_a_run_goes_on_with_another_limit(tmp_path, order, selector):
    X = np.random.default_rng(0).standard_normal((4000, 300))
    y = X[:, ::30] @ np.arange(1.0, 11.0)
    np.save(tmp_path / "x.npy", np.asarray(X, order=order))
    solver, path = OMP(n_nonzero_coefs=8), tmp_path / "run"
    whole = minimize(X, y, solver, selector)

    def run(**more):
        steps = []

        def stop(record):
            steps.append(record.iteration)
            return record.iteration % 3 == 2

        design = as_design(tmp_path / "x.npy", **more)
        return steps, minimize(design, y, solver, selector, checkpoint=path, callback=stop)

    assert run(memory_limit="4MB")[0] == [0, 1, 2]
    assert run(memory_limit="8MB")[0] == [3, 4, 5]
    steps, found = run(memory_limit="3MB")
    assert steps == [6, 7]
    np.testing.assert_array_equal(found.coef, whole.coef)
    assert found.objective == whole.objective
    fails("was made with a different X", run, memory_limit="3MB", exclude=[299])


def test_a_run_does_not_go_on_with_other_columns_or_another_order_of_files(tmp_path):
    X = np.random.default_rng(0).standard_normal((1000, 3000))
    for k in range(2):
        np.save(tmp_path / f"{k}.npy", X[500 * k :][:500])
    y, files = X[:, 7] + X[:, 1500], [tmp_path / "0.npy", tmp_path / "1.npy"]
    chosen = np.arange(2000)  # NumPy prints the first and the last ones alone

    def run(files, columns):
        design = as_design(files, memory_limit="3MB", columns=columns)
        return minimize(design, y, OMP(n_nonzero_coefs=2), "exact", checkpoint=tmp_path / "run")

    run(files, chosen)
    assert len(run(files, chosen).history) == 2
    other = np.where(chosen == 1000, 2500, chosen)
    for changed in ((files[::-1], chosen), (files, np.sort(other)), (files, iter(np.sort(other).tolist()))):
        fails("was made with a different X", run, *changed)


def test_a_checkpoint_that_cannot_be_written_is_refused_before_any_work(tmp_path, monkeypatch):
    X = np.random.default_rng(0).standard_normal((4000, 300))
    np.save(tmp_path / "x.npy", X)
    design = as_design(tmp_path / "x.npy", memory_limit="3MB")
    folder, junk, fine = tmp_path / "folder", tmp_path / "junk", tmp_path / "fine"
    folder.mkdir()
    junk.write_text("not a run")
    header = design.store.file_reads[0].bytes

    def unwritable(path, told):
        fails(told, minimize, design, X[:, 0], OMP(n_nonzero_coefs=2), "certified", checkpoint=path)
        assert design.store.file_reads[0].bytes == header < 1000
        assert not (tmp_path / f"{path.name}.codes").exists()

    unwritable(folder, "folder is a folder; name a file in it")
    unwritable(junk, "junk is not a checkpoint of this version; name another file or delete it")
    unwritable(tmp_path / "absent" / "run", "absent does not exist; make it first")

    def forbidden(dir):
        raise PermissionError(13, "Permission denied", str(dir))

    with monkeypatch.context() as patch:
        patch.setattr("skpursuit.loop.checkpoint.tempfile.TemporaryFile", forbidden)
        unwritable(fine, r"cannot be written to \(Permission denied\); name a file in another one")
    assert junk.read_text() == "not a run"
    assert minimize(design, X[:, 0], OMP(n_nonzero_coefs=2), "certified", checkpoint=fine).support[0] == 0
