"""The cases of run.py: what each measures, the function that yields its problems, and how many seeds."""

from . import coding, defaults, files, greedy, guarantees, libraries, machine, pursuits

CASES = {
    "certified": ("certified OMP against exact BLAS on many designs", pursuits.certified, 3),
    "selectors": ("OMP by every selector: fresh, prepared, bytes, atoms of exact", pursuits.selectors, 5),
    "landing": ("seconds and bytes by the number of atoms, for the front page", pursuits.landing, 1),
    "fits": ("estimators beside minimize, and the variants of Frank-Wolfe", pursuits.fits, 1),
    "auto": ("auto against the best of exact, gram and certified", pursuits.auto, 1),
    "drop_in": ("estimators of scikit-learn's names against scikit-learn's", libraries.drop_in, 1),
    "text": ("PursuitClassifier on text against L1 and abess, 50 features", libraries.text, 5),
    "defaults": ("default models against L1 and abess", defaults.defaults, 20),
    "coder": ("codes of many signals against SPAMS, in ten shapes", coding.coder, 1),
    "splice": ("non-negative codes of embeddings against a loop over Lasso", coding.splice, 1),
    "matching": ("gradient matching (non-negative, k = 1000) against CORDS' algorithm", coding.matching, 1),
    "files": ("OMP on .npy files of 80 MB: auto against exact and certified, bytes read", files.grid, 1),
    "large": ("OMP on a file larger than memory (12 GB): seconds, bytes, memory", files.large, 1),
    "first_use": ("a first answer in a new process, with and without compiled kernels", machine.first_use, 1),
    "threads": ("default threads against one thread, every kind of fit", machine.threads, 1),
    "guarantees": ("rho by selector, proofs beside OKRidge", guarantees.guarantees, 1),
    "greedy": ("recovery by greedy rules; the time of gain and of PySINDy's FROLS", greedy.greedy, 20),
    "audit": ("an audit of 50 steps against exact OMP", guarantees.audit_time, 1),
    "costs": ("the constants of auto's cost model (see --write)", machine.costs, 1),
}
