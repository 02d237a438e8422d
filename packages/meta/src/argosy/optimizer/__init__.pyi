"""Written by ``python -m argosy.stubs``."""

from argosy.optimizer.adam import Adam as Adam
from argosy.optimizer.adam import AdamW as AdamW
from argosy.optimizer.momentum import Momentum as Momentum
from argosy.optimizer.optimizer import Optimizer as Optimizer
from argosy.optimizer.momentum import SGD as SGD
from argosy.optimizer import lr as lr
