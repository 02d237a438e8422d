"""Written by ``python -m argosy.api.stubs``."""

from argosy.hapi.callbacks import Callback as Callback
from argosy.hapi.callbacks import EarlyStopping as EarlyStopping
from argosy.hapi.callbacks import History as History
from argosy.hapi.callbacks import LRScheduler as LRScheduler
from argosy.hapi.callbacks import ModelCheckpoint as ModelCheckpoint
from argosy.hapi.progress import ProgBarLogger as ProgBarLogger
from argosy.hapi.monitors import ReduceLROnPlateau as ReduceLROnPlateau
from argosy.hapi.summaries import SummaryWriter as SummaryWriter
from argosy.hapi.monitors import TensorBoard as TensorBoard
from argosy.hapi.monitors import VisualDL as VisualDL
from argosy.hapi.monitors import WandbCallback as WandbCallback
