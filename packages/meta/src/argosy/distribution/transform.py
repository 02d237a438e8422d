"""Functions of random variables, with their inverses and the logarithms of their Jacobians' determinants.

``base`` holds the class that all derive from, ``elementwise`` and ``vectors`` the transforms of numbers and vectors,
``composed`` those made of others.
"""

from argosy.distribution.transforms.base import Transform, Type
from argosy.distribution.transforms.composed import ChainTransform, IndependentTransform, StackTransform
from argosy.distribution.transforms.elementwise import (
    AbsTransform,
    AffineTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    TanhTransform,
)
from argosy.distribution.transforms.vectors import ReshapeTransform, SoftmaxTransform, StickBreakingTransform

__all__ = [
    "AbsTransform", "AffineTransform", "ChainTransform", "ExpTransform", "IndependentTransform", "PowerTransform",
    "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform", "StackTransform", "StickBreakingTransform",
    "TanhTransform", "Transform", "Type",
]  # fmt: skip
