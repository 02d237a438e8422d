"""Written by ``python -m argosy.api.stubs``."""

from argosy_phi_ops.custom_ops.declaration import CustomOperator as CustomOperator
from argosy_phi_ops.errors import OperatorError as OperatorError
from argosy_phi_ops.errors import ShapeError as ShapeError
from argosy_pir.types import TensorType as TensorType
from argosy_phi_ops.custom_ops.declaration import custom_op as custom_op
