"""Forms of signals, limits and codes: limits of each signal, fixed width, tensors, growing dictionaries."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.linalg import aslinearoperator

from skpursuit import PursuitCoder

WAYS = pytest.mark.parametrize("memory_limit", [2**30, 1], ids=["gram", "lockstep"])


def gaussian(d=128, n=48, m=60, seed=0):
    rng = np.random.default_rng(seed)
    atoms = rng.standard_normal((d, n))
    return atoms / np.linalg.norm(atoms, axis=1, keepdims=True), rng.standard_normal((m, n))


@WAYS
@pytest.mark.parametrize("atom_score", ["correlation", "gain"])
def test_limits_of_each_signal(memory_limit, atom_score):
    atoms, signals = gaussian()
    k, tol = np.arange(60) % 7 + 1, np.linspace(20, 50, 60)
    given = {"memory_limit": memory_limit, "atom_score": atom_score}
    codes = PursuitCoder(atoms, k, tol=tol, **given).transform(signals)
    for i in range(60):
        alone = PursuitCoder(atoms, int(k[i]), tol=float(tol[i]), **given).transform(signals[i : i + 1])
        np.testing.assert_array_equal(codes[[i]].indices, alone.indices)
        np.testing.assert_allclose(codes[[i]].data, alone.data, rtol=1e-10)
    pieces = PursuitCoder(atoms, k, tol=tol, **given).transform_stream([signals[:20], signals[20:]])
    assert [piece.nnz for piece in pieces] == [codes[:20].nnz, codes[20:].nnz]


@WAYS
def test_encode_gives_atoms_in_the_order_in_which_they_were_chosen(memory_limit):
    atoms, signals = gaussian()
    coder = PursuitCoder(atoms, 6, tol=22.0, memory_limit=memory_limit)
    indices, values, counts = coder.encode(signals)
    assert (indices.dtype, indices.shape, values.shape) == (np.int32, (60, 6), (60, 6))
    assert counts.min() < 6
    np.testing.assert_allclose(
        np.einsum("ik,ikn->in", values, atoms[indices]), coder.transform(signals) @ atoms, atol=1e-12
    )
    for row, count in zip(range(60), counts):
        one = PursuitCoder(atoms, 1).transform(signals[row : row + 1])
        assert indices[row, 0] == one.indices[0]
        assert not values[row, count:].any()


@pytest.mark.parametrize("positive", [False, True])
def test_several_atoms_a_step(positive):
    atoms, signals = gaussian(400, 200, 5)
    plain = PursuitCoder(atoms, 40, positive=positive).transform(signals)
    quick = PursuitCoder(atoms, 40, positive=positive, atoms_per_step=5).transform(signals)
    assert np.diff(quick.indptr).max() <= 40
    left = [np.sum((signals - codes @ atoms) ** 2) for codes in (plain, quick)]
    assert left[1] <= 1.15 * left[0]
    for y, code in zip(signals, quick.toarray()):
        support = np.flatnonzero(code)
        np.testing.assert_allclose(atoms[support] @ (y - code @ atoms), 0, atol=1e-10)
        assert not positive or (code >= 0).all()


def test_thousands_of_atoms_need_no_gram_matrix():
    atoms, signals = gaussian(3000, 1200, 1)
    coder = PursuitCoder(atoms, 1000, positive=True, atoms_per_step=50, memory_limit=2**20)
    code = coder.transform(signals)
    assert code.data.min() > 0
    assert np.sum((signals - code @ atoms) ** 2) < 0.3 * np.sum(signals**2)


def test_float16_is_worked_in_float32():
    atoms, signals = gaussian()
    half = signals.astype(np.float16)
    codes, single = (PursuitCoder(atoms, 5).transform(x) for x in (half, half.astype(np.float32)))
    assert codes.dtype == np.float32
    np.testing.assert_array_equal(codes.toarray(), single.toarray())


def test_a_dictionary_that_grows():
    atoms, signals = gaussian(200)
    coder = PursuitCoder(atoms[:100], 5)
    assert coder.extend(atoms[100:150]) is coder
    first = coder._prepared[1]
    coder.extend(atoms[150:] * 1.0)
    gram = coder._prepared[1].dictionary.gram
    np.testing.assert_array_equal(gram[:150, :150], first.dictionary.gram[:, :150])
    plain = PursuitCoder(atoms, 5).transform(signals)
    for dtype in (np.float64, np.float32):
        found = coder.transform(signals.astype(dtype))
        np.testing.assert_array_equal(found.indices, plain.indices)
    assert coder.set_params(n_nonzero_coefs=3).transform(signals).nnz == 180
    with pytest.raises(ValueError, match="atoms have 3 columns, expected 48"):
        coder.extend(np.ones((2, 3)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_nonzero_coefs": [1, 2.5]}, "n_nonzero_coefs must be a whole number .* or one for each"),
        ({"n_nonzero_coefs": [0, 1]}, "n_nonzero_coefs must be a whole number of at least 1"),
        ({"tol": [-1.0, 1]}, "tol must be a number of at least 0"),
        ({"tol": [1.0, 1]}, "tol has 2 entries, one for each signal, and there are more"),
        ({"atoms_per_step": 0}, "atoms_per_step"),
        ({"atoms_per_step": 2, "solver": "cosamp"}, "atoms_per_step needs solver='omp'"),
        ({"ridge": 0.1, "atom_score": "gain"}, "a ridge and atom_score='gain' do not go together"),
    ],
)
def test_bad_arguments_are_named(given, message):
    atoms, signals = gaussian()
    with pytest.raises(ValueError, match=message):
        PursuitCoder(atoms, **given).transform(signals)


@pytest.mark.parametrize("wrap", [csr_array, aslinearoperator])
def test_dictionaries_must_be_dense(wrap):
    atoms, signals = gaussian()
    with pytest.raises(TypeError, match="dictionary must be a dense array, not sparse, got "):
        PursuitCoder(wrap(atoms), 2).transform(signals)


@pytest.mark.parametrize("scale", [1e-120, 1e120])
def test_signals_beyond_the_range_of_squares_are_refused(scale):
    atoms, signals = gaussian()
    signals[7] *= scale
    with pytest.raises(ValueError, match="the signal in row 7 is of size"):
        PursuitCoder(atoms, 2).transform(signals)


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16", "float16"])
def test_tensors(name):
    torch = pytest.importorskip("torch")
    atoms, signals = gaussian()
    tensor = torch.from_numpy(signals).to(getattr(torch, name))
    coder = PursuitCoder(torch.from_numpy(atoms), 4)
    array = tensor.double().numpy() if name == "float64" else tensor.float().numpy()
    plain = PursuitCoder(atoms, 4)
    found, expected = coder.encode(tensor), plain.encode(array)
    assert all(isinstance(part, torch.Tensor) for part in found)
    assert found.values.dtype == tensor.dtype
    np.testing.assert_array_equal(found.indices.numpy(), expected.indices)
    np.testing.assert_allclose(found.values.double().numpy(), expected.values, rtol=1e-2)
    assert (coder.transform(tensor) != plain.transform(array)).nnz == 0


def test_tensors_that_cannot_be_read_are_refused():
    torch = pytest.importorskip("torch")
    coder = PursuitCoder(np.eye(4), 2)
    with pytest.raises(ValueError, match="tensors must be on the CPU, got one on meta"):
        coder.encode(torch.empty((3, 4), device="meta"))
    with pytest.raises(ValueError, match="is expecting 4 features"):
        coder.encode(torch.empty((3, 5)))
