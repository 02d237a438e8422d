"""Every operator's samples, decomposed and compiled, give what the interpreter gives."""

from itertools import islice

import numpy as np
import pytest
from guarded import SIDES, guarded
from programs import assert_equal

from argosy_cinn import CinnCompiler
from argosy_hwadapt import device
from argosy_phi_ops.context import context
from argosy_phi_ops.declare.index import scan
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import TensorType
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor


def as_tensors(value):
    if isinstance(value, np.ndarray):
        return Tensor(value)
    return [as_tensors(item) for item in value] if isinstance(value, list) else value


def bound(op, sample):
    """Flat operands and attributes of a call, the random state included."""
    operands, attributes = op.signature.bind(
        tuple(as_tensors(a) for a in sample.args), {k: as_tensors(v) for k, v in sample.kwargs.items()}
    )
    if op.random:
        generator = context().generator
        attributes = {**attributes, "counter": 0}
        if "segments" in attributes:
            attributes["segments"] = (*attributes["segments"][:-1], 1)
        state = np.array([generator.seed, generator.offset], np.uint64)
        operands = (*[x for x in operands if x is not None], Tensor(state))
    return operands, attributes


NAMES = sorted(scan())


@pytest.mark.parametrize("number", [0, pytest.param(1, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("names", [NAMES[i::8] for i in range(8)], ids=lambda names: names[0])
def test_samples_of_operators_agree_with_the_interpreter(names, number):
    """The first of each operator's samples, and the second."""
    for name in names:
        op = get_operator(name)
        if op.opaque or op.sampler is None:
            continue
        for sample in islice(op.sampler(np.random.default_rng(0)), number, number + 1):
            operands, attributes = bound(op, sample)
            arrays = [(x if isinstance(x, Tensor) else Tensor(x)).payload.array() for x in operands]
            program = op.expand([TensorType(a.shape, a.dtype.name) for a in arrays], attributes).program
            want, _ = interpret(program, arrays)
            executable = CinnCompiler().compile(program, device("cpu"))
            for side in SIDES:
                got = executable.run([StridedArray.from_array(guarded(a, side)) for a in arrays])
                for g, w in zip(got, want, strict=True):
                    assert_equal(g.array(), w, 50, name)
