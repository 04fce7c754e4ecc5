"""Programs that use scikit-learn, run by this library without a change."""

import logging
import os
import re
from importlib.util import find_spec

import numpy as np
import pytest
import sklearn.decomposition
import sklearn.linear_model
from tests.support.process import run_python

from skpursuit import OrthogonalMatchingPursuit, patch_sklearn, unpatch_sklearn
from skpursuit.interop import patch

NAMES = ("OrthogonalMatchingPursuit", "OrthogonalMatchingPursuitCV", "orthogonal_mp", "orthogonal_mp_gram")


def run(*arguments):
    return run_python("-m", "skpursuit.interop.patch", *arguments)


def test_names_are_replaced_and_given_back(caplog):
    before = [getattr(sklearn.linear_model, name) for name in NAMES]
    with caplog.at_level(logging.INFO, "skpursuit"), patch_sklearn():
        patch_sklearn()
        assert sklearn.linear_model.OrthogonalMatchingPursuit is OrthogonalMatchingPursuit
        assert all(getattr(sklearn.linear_model, name) is not old for name, old in zip(NAMES, before))
    assert [getattr(sklearn.linear_model, name) for name in NAMES] == before
    assert len(caplog.records) == 1
    unpatch_sklearn()
    assert [getattr(sklearn.linear_model, name) for name in NAMES] == before


@pytest.mark.parametrize("k", [None, 3])
def test_codes_are_those_of_scikit_learn(k):
    rng = np.random.default_rng(0)
    atoms, signals = rng.standard_normal((40, 30)), rng.standard_normal((50, 30))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    coder = sklearn.decomposition.SparseCoder(atoms, transform_n_nonzero_coefs=k)
    plain = (
        coder.transform(signals),
        sklearn.linear_model.orthogonal_mp(atoms.T, signals.T, n_nonzero_coefs=k),
    )
    with patch_sklearn():
        found = (
            coder.set_params(n_jobs=-1).transform(signals),
            sklearn.linear_model.orthogonal_mp(atoms.T, signals.T, n_nonzero_coefs=k),
        )
        with pytest.raises(ValueError, match="number of atoms cannot be more than"):
            sklearn.linear_model.orthogonal_mp(atoms.T, signals.T, n_nonzero_coefs=41)
    for ours, theirs in zip(found, plain):
        np.testing.assert_allclose(ours, theirs, atol=1e-10)


def test_scripts_run_with_their_arguments(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom sklearn.linear_model import orthogonal_mp, OrthogonalMatchingPursuit as O\n"
        "print(sys.argv[1:], O.__module__, __name__)\n"
    )
    assert run(script, "a", "-b") == "['a', '-b'] skpursuit.estimators.omp __main__\n"
    with pytest.raises(SystemExit, match="usage"):
        patch.main([])


def test_scikit_learns_own_tests_pass():
    """Those of dictionary learning that never come to a pursuit, and take long, are left out."""
    tests = ["sklearn.linear_model.tests.test_omp", "sklearn.decomposition.tests.test_dict_learning"]
    if find_spec(tests[0]) is None:
        pytest.skip("scikit-learn is installed without its tests")
    plain = "-q", "-p", "no:cacheprovider", "-c", os.devnull  # without the strict settings of this project
    fast = "not mmap and not memmapped and not lassocd and not numerical_consistency"
    assert re.search(r"\b2\d\d passed", run("-m", "pytest", *plain, "-k", fast, "--pyargs", *tests))
