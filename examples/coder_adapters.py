"""Functions of other projects, written with PursuitCoder and DictionaryLearner; copy what you need."""

import numpy as np

from skpursuit import DictionaryLearner, PursuitCoder


def orthogonal_mp_reg(A, b, tol=1e-4, nnz=None, positive=False, lam=0.0):
    """CORDS' OrthogonalMP_REG: weights of the columns of A whose sum is near b; tol is relative to b."""
    n = len(A)
    coder = PursuitCoder(
        A.T, nnz or n, tol=float((tol * np.linalg.norm(b)) ** 2), positive=positive, ridge=lam / n
    )
    return coder.transform(np.asarray(b)[None]).toarray()[0]


def ksvd(signals, n_atoms, k, n_iter=20, random_state=0):
    """K-SVD's face: (dictionary, codes) of signals in columns; atoms move by block coordinate descent."""
    learner = DictionaryLearner(n_atoms, k, max_iter=n_iter, random_state=random_state).fit(signals.T)
    return learner.components_.T, learner.transform(signals.T).T


def splice_decompose(embeddings, concepts, k=32):
    """SpLiCE: embeddings as non-negative sums of k concepts, and what they sum to, of norm 1."""
    coder = PursuitCoder(concepts, k, positive=True)
    weights = coder.transform(embeddings)
    sums = coder.inverse_transform(weights)
    return weights, sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((50, 200)), rng.standard_normal(50)
    w = orthogonal_mp_reg(A, b, nnz=10, positive=True, lam=0.1)
    print("gradient matching:", np.count_nonzero(w), "weights, least", w.min())
    D, X = ksvd(rng.standard_normal((16, 500)), 32, 4)
    print("K-SVD:", D.shape, X.shape)
    weights, sums = splice_decompose(rng.standard_normal((20, 50)), A.T, 5)
    print("SpLiCE:", weights.shape, weights.nnz, sums.shape)
