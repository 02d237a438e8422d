"""Written by ``python -m argosy.api.stubs``."""

from argosy.optimizer.lbfgs import LBFGS as LBFGS
from argosy.optimizer.lars import LarsMomentumOptimizer as LarsMomentumOptimizer
from argosy.incubate.optimizer.lookahead import LookAhead as LookAhead
from argosy.incubate.optimizer.modelaverage import ModelAverage as ModelAverage
from argosy.incubate.optimizer import functional as functional
