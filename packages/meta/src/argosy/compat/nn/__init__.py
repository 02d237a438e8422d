"""Layers, and their functions, with the signatures of another framework."""

from argosy.faces import face

_LAYERS = ("AvgPool1D", "AvgPool2D", "AvgPool3D", "Linear", "Softmax", "Unfold")
_TABLE = {
    "functional": "argosy.compat.nn.functional",
    **{name: f"argosy.compat.nn.layers:{name}" for name in _LAYERS},
    "MultiheadAttention": "argosy.compat.nn.attention:MultiheadAttention",
    **{f"AvgPool{n}d": f"argosy.compat.nn.layers:AvgPool{n}D" for n in (1, 2, 3)},
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())
