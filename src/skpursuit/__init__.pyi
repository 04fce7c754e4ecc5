# The public names as type checkers see them. `__init__.py` has the same ones in a table, from which they load
# on first use; a test compares the two.

from skpursuit import datasets as datasets
from skpursuit import metrics as metrics
from skpursuit import plots as plots
from skpursuit import theory as theory
from skpursuit.data import as_design as as_design
from skpursuit.estimators.classifier import PursuitClassifier as PursuitClassifier
from skpursuit.estimators.classifier import PursuitClassifierCV as PursuitClassifierCV
from skpursuit.estimators.coder import PursuitCoder as PursuitCoder
from skpursuit.estimators.dictionary import DictionaryLearner as DictionaryLearner
from skpursuit.estimators.display import PathDisplay as PathDisplay
from skpursuit.estimators.omp import OrthogonalMatchingPursuit as OrthogonalMatchingPursuit
from skpursuit.estimators.omp import OrthogonalMatchingPursuitCV as OrthogonalMatchingPursuitCV
from skpursuit.estimators.omp_functions import orthogonal_mp as orthogonal_mp
from skpursuit.estimators.omp_functions import orthogonal_mp_gram as orthogonal_mp_gram
from skpursuit.estimators.regressor import PursuitRegressor as PursuitRegressor
from skpursuit.estimators.regressor import PursuitRegressorCV as PursuitRegressorCV
from skpursuit.loop.checkpoint import Checkpoint as Checkpoint
from skpursuit.loop.run import minimize as minimize
from skpursuit.problem.losses import Huber as Huber
from skpursuit.problem.losses import Logistic as Logistic
from skpursuit.problem.losses import Loss as Loss
from skpursuit.problem.losses import Multinomial as Multinomial
from skpursuit.problem.losses import Poisson as Poisson
from skpursuit.problem.losses import Squared as Squared
from skpursuit.problem.sets import L1Ball as L1Ball
from skpursuit.problem.sets import Simplex as Simplex
from skpursuit.problem.state import Result as Result
from skpursuit.problem.state import Status as Status
from skpursuit.selectors import Query as Query
from skpursuit.selectors import Selection as Selection
from skpursuit.selectors import Selector as Selector
from skpursuit.selectors.auto import Auto as Auto
from skpursuit.selectors.certified import Certified as Certified
from skpursuit.selectors.exact import Exact as Exact
from skpursuit.selectors.gram import Gram as Gram
from skpursuit.selectors.greedy import Greedy as Greedy
from skpursuit.selectors.greedy import Importance as Importance
from skpursuit.selectors.greedy import Uniform as Uniform
from skpursuit.selectors.halving import SuccessiveHalving as SuccessiveHalving
from skpursuit.selectors.reject import SuccessiveReject as SuccessiveReject
from skpursuit.selectors.sketch import Sketch as Sketch
from skpursuit.selectors.stop import Budget as Budget
from skpursuit.selectors.stop import ErrorBound as ErrorBound
from skpursuit.selectors.stop import Stability as Stability
from skpursuit.solvers import Solver as Solver
from skpursuit.solvers.cosamp import CoSaMP as CoSaMP
from skpursuit.solvers.cosamp import GraSP as GraSP
from skpursuit.solvers.frank_wolfe import FrankWolfe as FrankWolfe
from skpursuit.solvers.pursuit import OMP as OMP
from skpursuit.solvers.pursuit import MatchingPursuit as MatchingPursuit
from skpursuit.solvers.stochastic import StoGradMP as StoGradMP
from skpursuit.solvers.stochastic import StoIHT as StoIHT

__version__: str
