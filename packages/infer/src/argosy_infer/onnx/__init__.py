"""ONNX models as programs (the extra ``[onnx]``).

``load`` makes a program of a model, ``Session`` runs one on arrays. What ONNX calls operators are functions in
`argosy_infer.onnx.operators`, written with argosy's own; nothing else of the package imports the library ``onnx``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what names stand for, for editors and type checkers
    from argosy_infer.onnx.capture import UnknownValue
    from argosy_infer.onnx.registry import operator_names
    from argosy_infer.onnx.session import Session, load

__all__ = ["Session", "UnknownValue", "load", "operator_names"]

_HOMES = {"UnknownValue": "capture", "operator_names": "registry", "Session": "session", "load": "session"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
