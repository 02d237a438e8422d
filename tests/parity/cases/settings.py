"""Layers' members, settings of the framework, and helpers of its namespaces."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call, script
from parity.inputs import tensor as t

MAKERS = ("BFloat16", "Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short")


def cases() -> Iterator[Case]:
    for name in ("dictionary", "parameter_containers", "members_of_layer", "assigned_tensor", "states_of_cells",
                 "recurrent_list", "initialised_later", "makers", "assigned_output", "defaults", "generator_states",
                 "modes", "sizes", "gains", "global_initializers", "data_pipelines", "areas",
                 "optimizer_rates", "mapped_file", "verbose_schedule", "captured_helpers"):  # fmt: skip
        yield script(name)
    for name in ("gradients_cleared", "decorated", "custom_derivative"):
        yield script(name, t(2, 3))
    yield script("caches", t(2, 3, 8))
    for how in ("bfloat16", "double", "float"):
        yield script("converted", how)
    for name in MAKERS:
        yield script("legacy_makers", f"{name}Tensor")
    for dtype in ("int8", "int32", "int64", "float32", "float64", "complex64", "bool"):
        yield script("questions", dtype)
    for drop in (True, False):
        yield script("readers", drop)
    yield script("printed", t(2, 3))
    yield script("printed", t(2, 3), precision=3)
    yield script("printed", t(2, 3), sci_mode=True, precision=2)
    yield script("printed", t(5, 7), threshold=10, edgeitems=1)
    yield script("printed", t(5, 7), linewidth=50)
    for function in ("svd_lowrank", "pca_lowrank"):
        yield script("low_rank", t(6, 4), function)
    yield call("tensor.random.check_shape", [2, 3], "zeros")
    for place in ("CUDAPlace", "CUDAPinnedPlace", "XPUPinnedPlace"):
        yield call(place, *([0] if place == "CUDAPlace" else []))
