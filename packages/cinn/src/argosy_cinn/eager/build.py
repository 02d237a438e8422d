"""The shared object of the native build, made once for each machine and version and kept in the disk cache.

Finding it there needs no LLVM: its key is the text of this package's modules, the layout and the interpreter.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path

from argosy_cinn.__about__ import __version__
from argosy_cinn.eager import slot_offsets as shared
from argosy_cinn.eager.arithmetic import DTYPES, SIDES, add_kernels, kernel_name
from argosy_cinn.eager.slot_offsets import SlotOffsets
from argosy_cinn.eager.updates import UPDATES, add_update_all, add_updates, update_name
from argosy_cinn.runtime.cache import default_cache

__all__ = ["EXPORTS", "TARGET", "native_build"]

TARGET = "x86-64-v3"
"""What the code is compiled for: it runs on any x86-64 machine with AVX2."""

EXPORTS = (
    "state",
    "plans",
    "scratch",
    "backward_loop",
    "update_all",
    *(f"free_{kind}" for kind in ("tensor", "payload", "node")),
    *(f"enter_{name}" for name in shared.OPERATORS),
    *(f"enter_{name}" for name in ("call", "inplace", "method", "matmul", "getitem", "negative", "pow", "compare")),
    "bind_method",
    *(kernel_name(operator, dtype, side) for operator in shared.OPERATORS for dtype in DTYPES for side in SIDES),
    *(update_name(rule, dtype) for rule in UPDATES for dtype in DTYPES),
)


class NativeBuild:
    """What `eager.native` gets: the shared object's bytes, what it exports and how its words are laid out."""

    exports = EXPORTS
    state = shared.STATE
    plans = shared.PLANS
    plan_words = shared.PLAN_WORDS
    words = shared.WORDS
    operands = shared.OPERANDS
    recipes = shared.RECIPES
    back_words = shared.BACK_WORDS
    gradients = shared.GRADIENTS
    method = shared.METHOD
    scratch = shared.SCRATCH
    updates = UPDATES
    operators = shared.OPERATORS
    sizes = shared.SIZES
    table = shared.TABLE
    api = shared.API
    dtypes = tuple(DTYPES)

    def __init__(self, code: bytes) -> None:
        self.code = code


def native_build(offsets: Mapping[str, int]) -> NativeBuild:
    """The build for objects of this layout, from the disk cache or compiled now (half a second). Raises CodegenError
    when LLVM refuses it."""
    layout, cache = SlotOffsets(offsets), default_cache()
    key = _key(layout)
    code = cache.get(key)
    if code is None:
        code = _compile(layout)
        cache.put(key, code)
    return NativeBuild(code)


def _key(layout: SlotOffsets) -> str:
    digest = hashlib.sha256(f"eager {__version__} {sys.version} {TARGET} {layout.key}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def module_text(layout: SlotOffsets) -> str:
    """The whole build as LLVM assembly."""
    from argosy_cinn.eager.application import add_application
    from argosy_cinn.eager.backward_loop import add_backward_loop
    from argosy_cinn.eager.calls import add_calls
    from argosy_cinn.eager.derivatives import add_derivatives
    from argosy_cinn.eager.entries import add_entries
    from argosy_cinn.eager.inplace import add_inplace
    from argosy_cinn.eager.objects import add_objects
    from argosy_cinn.eager.packing import add_packing
    from argosy_cinn.eager.recording import add_recording
    from argosy_cinn.eager.signatures import add_signatures
    from argosy_cinn.eager.views import add_views
    from argosy_cinn.printers.llvm import Module
    from argosy_cinn.target import Target

    module = Module(Target.from_name(TARGET), interposable=False)
    module.variable("state", "i64", len(shared.STATE))
    module.variable("plans", "i64", shared.PLANS)
    module.variable("scratch", "i64", shared.SCRATCH // 8)
    add_kernels(module)
    add_updates(module)
    add_objects(module, layout)
    add_recording(module, layout)
    add_application(module, layout)
    add_packing(module, layout)
    add_views(module, layout)
    add_signatures(module, layout)
    add_calls(module, layout)
    add_entries(module, layout)
    add_derivatives(module, layout)
    add_backward_loop(module, layout)
    add_update_all(module, layout)
    add_inplace(module, layout)
    return module.text()


def _compile(layout: SlotOffsets) -> bytes:
    from argosy_cinn.eager.shared_object import shared_object
    from argosy_cinn.runtime.jit import compile_object
    from argosy_cinn.target import Target

    return shared_object(compile_object(module_text(layout), Target.from_name(TARGET), 2), EXPORTS)
