"""Written by ``python -m argosy.api.stubs``."""

from argosy.optimizer.averaging import ASGD as ASGD
from argosy.optimizer.adaptive import Adadelta as Adadelta
from argosy.optimizer.adaptive import Adagrad as Adagrad
from argosy.optimizer.adam import Adam as Adam
from argosy.optimizer.adam import AdamW as AdamW
from argosy.optimizer.moments import Adamax as Adamax
from argosy.optimizer.lbfgs import LBFGS as LBFGS
from argosy.optimizer.moments import Lamb as Lamb
from argosy.optimizer.momentum import Momentum as Momentum
from argosy.optimizer.moments import NAdam as NAdam
from argosy.optimizer.optimizer import Optimizer as Optimizer
from argosy.optimizer.moments import RAdam as RAdam
from argosy.optimizer.adaptive import RMSProp as RMSProp
from argosy.optimizer.averaging import Rprop as Rprop
from argosy.optimizer.momentum import SGD as SGD
from argosy.optimizer import lr as lr
