"""Public names are real to type checkers: those of the stub are those of the package, and mypy sees them."""

import ast
from pathlib import Path

import skpursuit

from .support.process import ROOT, run_python

STUB = Path(skpursuit.__file__).with_name("__init__.pyi")
PROGRAM = """import numpy as np
from skpursuit import OMP, PursuitRegressor, Loss, datasets, minimize

reveal_type(OMP(3))
reveal_type(minimize(np.eye(3), np.ones(3), OMP(3)).n_iter)
reveal_type(PursuitRegressor(n_nonzero_coefs=3).fit(np.eye(3), np.ones(3)))
OMP(n_nonzero_coefs="three")
PursuitRegressor(coefficients=3)
from skpursuit import Nothing
"""
SAID = {
    "4: note": 'Revealed type is "skpursuit.solvers.matching_pursuit.OMP"',
    "5: note": 'Revealed type is "int"',
    "6: note": 'Revealed type is "skpursuit.estimators.regressor.PursuitRegressor"',
    "7: error": 'Argument "n_nonzero_coefs" to "OMP" has incompatible type "str"; expected "int | None"',
    "8: error": 'Unexpected keyword argument "coefficients" for "PursuitRegressor"',
    "9: error": 'Module "skpursuit" has no attribute "Nothing"',
}


def test_the_package_reads_the_names_of_its_stub():
    imports = [node for node in ast.parse(STUB.read_text()).body if isinstance(node, ast.ImportFrom)]
    stub = {name.asname: node.module for node in imports for name in node.names if name.asname == name.name}
    assert len(stub) == STUB.read_text().count("\nfrom ") > 50
    assert ["__version__", *stub] == skpursuit.__all__
    assert stub == skpursuit._HOME


def test_a_type_checker_sees_through_public_names(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    code = f"from mypy import api; print(api.run([{str(program)!r}, '--no-error-summary'])[0])"
    lines = run_python("-c", code, MYPYPATH=str(ROOT / "src")).splitlines()
    told = [line.partition("program.py:")[2] for line in lines if "program.py:" in line]
    for place, said in SAID.items():
        assert [said in line for line in told if line.startswith(place)] == [True], (place, told)
