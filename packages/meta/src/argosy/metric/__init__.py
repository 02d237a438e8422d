"""Metrics: the face of ``argosy.metric``."""

from argosy.faces import face

_TABLE = {
    "Metric": "argosy.metric.metric:Metric",
    "Accuracy": "argosy.metric.topk:Accuracy",
    "accuracy": "argosy.metric.topk:accuracy",
    "Precision": "argosy.metric.binary:Precision",
    "Recall": "argosy.metric.binary:Recall",
    "Auc": "argosy.metric.auc:Auc",
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())
