"""Written by ``python -m argosy.api.stubs``."""

from builtins import bool as _bool
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from builtins import str as _str
from collections.abc import Sequence
from typing import Any

from argosy_tensorcore.tensor import Tensor

from argosy.nn.quant.functional_layers import FloatFunctionalLayer as FloatFunctionalLayer
from argosy.nn.quant.fake_quant import MovingAverageAbsMaxScale as _own_QuantStub
from argosy.nn.quant.stub import QuanterStub as QuanterStub
from argosy.nn.quant.stub import Stub as Stub
from argosy.nn.quant.functional_layers import add as add
from argosy.nn.quant.functional_layers import concat as concat
from argosy.nn.quant.functional_layers import divide as divide
from argosy.nn.quant import fake_quant as fake_quant
from argosy.nn.quant.functional_layers import flatten as flatten
from argosy.nn.quant import format as format
from argosy.nn.quant import functional_layers as functional_layers
from argosy.nn.quant.functional_layers import matmul as matmul
from argosy.nn.quant.functional_layers import multiply as multiply
from argosy.nn.quant import qat as qat
from argosy.nn.quant import quant_layers as quant_layers
from argosy.nn.quant import quantized_linear as quantized_linear
from argosy.nn.quant.functional_layers import reshape as reshape
from argosy.nn.quant import stub as stub
from argosy.nn.quant.functional_layers import subtract as subtract
from argosy.nn.quant.functional_layers import transpose as transpose
QuantStub = _own_QuantStub
def llm_int8_linear(x: Tensor | _complex, weight: Tensor | _complex, bias: Tensor | _complex | None = None, weight_scale: Tensor | _complex | None = None, threshold: _float | Tensor = 6.0, name: _str | None = None) -> Tensor: ...
def weight_dequantize(x: Tensor | _complex, scale: Tensor | _complex, algo: _str = 'weight_only_int8', out_dtype: _str | None = None, group_size: _int = -1, name: _str | None = None) -> Tensor: ...
def weight_only_linear(x: Tensor | _complex, weight: Tensor | _complex, bias: Tensor | _complex | None = None, weight_scale: Tensor | _complex | None = None, weight_dtype: _str = 'int8', arch: _int | None = None, group_size: _int = -1, weight_offset: Tensor | _complex | None = None, name: _str | None = None) -> Tensor: ...
def weight_quantize(x: Tensor | _complex, algo: _str = 'weight_only_int8', arch: _int | None = None, group_size: _int = -1, name: _str | None = None) -> tuple[Tensor, Tensor]: ...
