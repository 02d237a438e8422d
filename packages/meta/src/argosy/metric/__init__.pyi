"""Written by ``python -m argosy.api.stubs``."""

from argosy.metric.topk import Accuracy as Accuracy
from argosy.metric.auc import Auc as Auc
from argosy.metric.metric import Metric as Metric
from argosy.metric.binary import Precision as Precision
from argosy.metric.binary import Recall as Recall
from argosy.metric.topk import accuracy as accuracy
