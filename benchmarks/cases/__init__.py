"""The cases of run.py: what each measures, the function that yields its problems, and how many seeds."""

from . import coding, costs, files, guarantees, libraries, machine, pursuits, tabular

CASES = {
    "certified": ("certified OMP against exact BLAS on designs of all kinds", pursuits.certified, 3),
    "check": ("make bench-check: certified OMP on Gaussian columns, with floors", pursuits.check, 2),
    "selectors": ("OMP by every selector: fresh, prepared, bytes, atoms of exact", pursuits.selectors, 5),
    "cosamp": ("CoSaMP by selector, against NumPy", pursuits.cosamp, 3),
    "frank_wolfe": (
        "Frank-Wolfe with Gram columns against a BLAS gradient per step",
        pursuits.frank_wolfe,
        1,
    ),
    "auto": ("auto against the best of exact, gram and certified", pursuits.auto, 1),
    "swaps": ("OMP with swaps on correlated columns: support, objective, time; abess", pursuits.swaps, 20),
    "drop_in": ("estimators of scikit-learn's names against scikit-learn's", libraries.drop_in, 1),
    "text": ("PursuitClassifier on text against L1 and abess, 50 features", libraries.text, 5),
    "coder": ("codes of many signals against SPAMS and scikit-learn", coding.coder, 1),
    "dictionary": ("a dictionary learned from a recording: error and time", coding.dictionary, 1),
    "csv": ("reading CSV against pandas", tabular.csv_reading, 1),
    "table": ("a CSV file read and fitted, against pandas and LassoCV", tabular.table_fit, 1),
    "files": ("OMP on .npy files of 80 MB: auto against exact and certified, bytes read", files.grid, 1),
    "large": ("OMP on a file larger than memory (12 GB): seconds, bytes, memory", files.large, 1),
    "first_use": ("a first answer in a new process, with and without compiled kernels", machine.first_use, 1),
    "threads": ("default threads against one thread, every kind of fit (see --busy)", machine.threads, 1),
    "guarantees": (
        "rho by selector, proofs beside OKRidge (see --write)",
        guarantees.guarantees,
        1,
    ),
    "audit": ("an audit of 50 steps against exact OMP", guarantees.audit_time, 1),
    "costs": ("the constants of auto's cost model (see --write)", costs.costs, 1),
}
