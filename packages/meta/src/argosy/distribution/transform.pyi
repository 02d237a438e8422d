"""Written by ``python -m argosy.api.stubs``."""

from argosy.distribution.transforms.elementwise import AbsTransform as AbsTransform
from argosy.distribution.transforms.elementwise import AffineTransform as AffineTransform
from argosy.distribution.transforms.base import ChainTransform as ChainTransform
from argosy.distribution.transforms.elementwise import ExpTransform as ExpTransform
from argosy.distribution.transforms.combinators import IndependentTransform as IndependentTransform
from argosy.distribution.transforms.elementwise import PowerTransform as PowerTransform
from argosy.distribution.transforms.vectors import ReshapeTransform as ReshapeTransform
from argosy.distribution.transforms.elementwise import SigmoidTransform as SigmoidTransform
from argosy.distribution.transforms.vectors import SoftmaxTransform as SoftmaxTransform
from argosy.distribution.transforms.combinators import StackTransform as StackTransform
from argosy.distribution.transforms.vectors import StickBreakingTransform as StickBreakingTransform
from argosy.distribution.transforms.elementwise import TanhTransform as TanhTransform
from argosy.distribution.transforms.base import Transform as Transform
from argosy.distribution.transforms.base import Type as Type
