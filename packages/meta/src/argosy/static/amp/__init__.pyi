"""Written by ``python -m argosy.api.stubs``."""

from argosy.static.amp.lists import AutoMixedPrecisionLists as AutoMixedPrecisionLists
from argosy.static.amp.lists import AutoMixedPrecisionLists as _own_CustomOpLists
from argosy.static.amp import bf16 as bf16
from argosy.static.amp.lists import cast_model_to_fp16 as cast_model_to_fp16
from argosy.static.amp.lists import cast_parameters_to_fp16 as cast_parameters_to_fp16
from argosy.static.amp.decoration import decorate as decorate
from argosy.static.amp.lists import fp16_guard as fp16_guard
CustomOpLists = _own_CustomOpLists
