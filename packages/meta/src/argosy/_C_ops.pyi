"""Written by ``python -m argosy.api.stubs``."""

from argosy.nn.statistics import batch_norm_with_statistics as _own_batch_norm
from argosy.vision.ops.suppression import multiclass_nms3 as multiclass_nms3
batch_norm = _own_batch_norm
