"""The coder as a scikit-learn transformer, and on signals that come piece by piece."""

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import vstack
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpursuit import PursuitCoder


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.standard_normal((60, 24)), rng.standard_normal((5000, 24))


def check_same(a, b):
    assert a.shape == b.shape
    assert a.dtype == b.dtype
    assert (a != b).nnz == 0


def test_fit_clone_and_pickle_change_nothing(data):
    atoms, signals = data
    coder = PursuitCoder(atoms, 3, "cosamp", 1e-3, refit=True)
    expected = coder.transform(signals[:50])
    assert coder.fit(signals) is coder
    check_same(coder.fit_transform(signals[:50]), expected)
    check_same(clone(coder).transform(signals[:50]), expected)
    check_same(pickle.loads(pickle.dumps(coder)).transform(signals[:50]), expected)
    assert coder.get_params()["dictionary"] is atoms
    assert coder.n_features_in_ == 24
    assert list(coder.get_feature_names_out())[-1] == "pursuitcoder59"


def test_fit_remembers_the_names_of_columns(data):
    atoms, signals = data
    frame = pd.DataFrame(signals[:9], columns=[f"x{i}" for i in range(24)])
    coder = PursuitCoder(atoms, 3).fit(frame)
    check_same(coder.transform(frame), PursuitCoder(atoms, 3).transform(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        coder.transform(frame[frame.columns[::-1]])


def test_in_a_pipeline_with_data_frames_lists_and_integers(data):
    atoms, signals = data
    pipeline = make_pipeline(StandardScaler(), PursuitCoder(atoms, 3)).fit(signals)
    assert pipeline.transform(signals[:9]).shape == (9, 60)
    coder = PursuitCoder(atoms, 3)
    check_same(coder.transform(pd.DataFrame(signals[:9])), coder.transform(signals[:9]))
    whole = np.rint(signals[:9] * 10)
    check_same(coder.transform(whole.astype(np.int16)), coder.transform(whole))
    check_same(coder.transform(whole.tolist()), coder.transform(whole))


def test_orders_and_strides_of_memory_do_not_matter(data):
    atoms, signals = data
    expected = PursuitCoder(atoms, 3).transform(signals[:40])
    check_same(PursuitCoder(np.asfortranarray(atoms), 3).transform(np.asfortranarray(signals[:40])), expected)
    frozen = signals[:40].copy()
    frozen.setflags(write=False)
    check_same(PursuitCoder(atoms, 3).transform(frozen), expected)
    check_same(PursuitCoder(atoms, 3).transform(np.repeat(signals[:40], 2, axis=0)[::2]), expected)


def test_inverse_transform_multiplies(data):
    atoms, signals = data
    coder = PursuitCoder(atoms, 3)
    codes = coder.transform(signals[:10])
    np.testing.assert_allclose(coder.inverse_transform(codes), codes.toarray() @ atoms)
    np.testing.assert_allclose(coder.inverse_transform(codes.toarray()), codes.toarray() @ atoms)
    assert coder.inverse_transform(coder.transform(signals[:10].astype("f"))).dtype == np.float32


def test_stream_from_a_memory_mapped_array(data, tmp_path):
    atoms, signals = data
    signals.tofile(tmp_path / "signals")
    mapped = np.memmap(tmp_path / "signals", dtype=np.float64, mode="r", shape=signals.shape)
    coder = PursuitCoder(atoms, 3)
    expected = coder.transform(signals)
    check_same(coder.transform(mapped), expected)
    pieces = list(coder.transform_stream(mapped))
    check_same(vstack(pieces, format="csr"), expected)
    assert len(pieces) > 1


def test_stream_from_a_generator(data):
    atoms, signals = data
    coder = PursuitCoder(atoms, 3)
    cuts = [0, 10, 10, 700, 5000]
    blocks = (signals[a:b] for a, b in pairwise(cuts))
    stream = coder.transform_stream(blocks)
    assert next(stream).shape == (10, 60)
    rest, whole = vstack(list(stream), format="csr"), coder.transform(signals[10:])  # which needs no kernel
    np.testing.assert_array_equal(rest.indices, whole.indices)
    np.testing.assert_allclose(rest.data, whole.data, rtol=1e-12)


def test_stream_names_the_row_of_a_bad_value(data):
    atoms, signals = data
    signals[4500, 0] = np.inf
    stream = PursuitCoder(atoms, 3).transform_stream(signals[i : i + 1000] for i in range(0, 5000, 1000))
    with pytest.raises(ValueError, match="row 4500"):
        list(stream)
