"""Every operator captured: traced, compiled by the reference compiler and run, it gives what it gives eagerly."""

import numpy as np
import pytest

from argosy_hwadapt import device
from argosy_phi_ops.capture.tracer import Tracer
from argosy_phi_ops.compiler import get_compiler
from argosy_phi_ops.context import context
from argosy_phi_ops.declare.index import MODULES
from argosy_phi_ops.declare.operator import get_operator
from argosy_pir.types import TensorType
from argosy_tensorcore.tensor import Tensor


def mapped(value, convert):
    """`value` with every array in it converted."""
    if isinstance(value, np.ndarray):
        return convert(value)
    return [mapped(item, convert) for item in value] if isinstance(value, list) else value


def call(op, sample, convert):
    results = op(
        *(mapped(a, convert) for a in sample.args), **{k: mapped(v, convert) for k, v in sample.kwargs.items()}
    )
    return list(results) if isinstance(results, tuple | list) else [results]


@pytest.mark.parametrize("name", sorted(MODULES))
def test_captured_operator_gives_what_eager_mode_gives(name):
    op = get_operator(name)
    if op.opaque:
        pytest.skip("runs eagerly only")
    for sample in list(op.sampler(np.random.default_rng(0)))[:2]:
        generator = context().generator
        generator.manual_seed(5)
        eager = call(op, sample, Tensor)
        generator.manual_seed(5)
        arrays = []
        with Tracer(name) as tracer:

            def traced(array, tracer=tracer, arrays=arrays):
                arrays.append(array)
                return tracer.input(TensorType(array.shape, array.dtype.name))

            captured = tracer.finish(call(op, sample, traced))
        captured.program.verify()
        executable = get_compiler("reference").compile(captured.program, device("cpu"))
        outputs = executable.run([Tensor(a).payload for a in arrays], [s.payload for s in captured.states])
        for result, expected in zip(outputs, eager, strict=True):
            a, b = result.array(), expected.payload.array()
            assert a.dtype == b.dtype
            if a.dtype.name in ("bfloat16", "float16"):
                a, b = a.astype(np.float32), b.astype(np.float32)
            np.testing.assert_allclose(a, b, rtol=2e-6, atol=2e-6)
        if op.random and captured.draws:
            assert generator.offset == captured.draws
