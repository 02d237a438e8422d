"""Forms as text, for chips with code generators of their own, and read again."""

import numpy as np
import pytest

from argosy_cinn.forms.form import Form
from argosy_cinn.forms.parsing import parse_kernels
from argosy_cinn.forms.text import header, print_form
from argosy_cinn.pipeline import lower_program
from argosy_cinn.plan.planning import plan_program
from argosy_cinn.printers.work_groups import SimtTarget
from argosy_cinn.simt.program import SimtProgram
from argosy_cinn.target import Target
from argosy_hwadapt import device
from argosy_phi_ops import get_operator
from argosy_phi_ops.passes.primitives import to_primitives
from argosy_pir.types import TensorType
from argosy_tensorcore.tensor import Tensor


class Chip:
    """A device that takes text, on which nothing runs."""

    name = "chip"
    info = device("virtual").info._replace(kernel_forms=("nest",))


def program_of(name, *arrays, **settings):
    op = get_operator(name)
    operands, attributes = op.signature.bind(tuple(map(Tensor, arrays)), settings)
    types = [TensorType(tuple(x.shape), x.dtype.name) for x in operands]
    return op.expand(types, attributes).program


def text_of(name, *arrays, **settings):
    return SimtProgram(program_of(name, *arrays, **settings), Chip(), {}).source.strip()


def floats(*shape):
    return np.zeros(shape, np.float32)


def test_text_says_what_is_computed():
    """Loads, reductions and stores by index; sums over rows without partial results."""
    assert (
        text_of("softmax", floats(3, 5))
        == """kernel k0_max_sum_3x5 float32[3,5] float32[3,5]
nest outer i0:3 sequential inner i1:5
%0 = float32 load b0[5*i0 + i1]
%1 = float32 reduce max %0
%2 = float32 sub %0 %1
%3 = float32 exp %2
%4 = float32 constant 0x0000803f
%5 = float32 reduce sum %3
%6 = float32 div %4 %5
%7 = float32 mul %3 %6
store each float32 b1[5*i0 + i1] = %7
end"""
    )
    assert "column float32 sum b1[i1] = %0" in text_of("sum", floats(3000, 17), axis=[0])


CASES = {
    "matmul": (floats(2, 3, 4), floats(4, 5)), "conv2d": (floats(2, 4, 9, 11), floats(6, 4, 3, 3)),
    "cumsum": (floats(9, 31),), "argsort": (floats(6, 7),), "put_along_axis": (floats(4, 3), np.zeros((2, 3), int),
    floats(2, 3), 0), "gather": (floats(4, 3), np.zeros(2, int)), "sum": (floats(3000, 17), [0]),
    "roll": (floats(5), 2), "fft_r2c": (floats(5, 30), [1], "backward", True), "take": (floats(4, 3), np.zeros(2, int)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_text_is_read_again_as_the_same_form(name):
    """Products, windows, scans, orders, scatters, looked-up elements, columns, quotients and checks."""
    op = get_operator(name)
    wrap = [Tensor(x) if isinstance(x, np.ndarray) else x for x in CASES[name]]
    operands, attributes = op.signature.bind(tuple(wrap), {})
    types = [TensorType(tuple(x.shape), x.dtype.name) if isinstance(x, Tensor) else TensorType((), "int64")
             for x in operands]  # fmt: skip
    text = SimtProgram(op.expand(types, attributes).program, Chip(), {}).source
    kernels = parse_kernels(text)
    again = "\n".join([f"{header(k.name, k.buffers)}\n{print_form(k.form)[0]}\n" for k in kernels])
    assert again.strip() == text.strip()
    assert all(isinstance(k.form, Form) and k.form.name() and k.form.cost() is not None for k in kernels)


@pytest.mark.parametrize(
    "line", ["nest outer inner", "nest outer sequential inner i0:3\n%0 = float32 load b7[i0]", "nothing 3", "%1"]
)
def test_what_is_no_text_is_shown(line):
    with pytest.raises(ValueError, match="this is no kernel") as found:
        parse_kernels(f"kernel k0 float32[3]\n{line}\nend\n")
    assert line in str(found.value)


MACHINES = {
    "without vectors": Target("x86_64-unknown-linux-gnu", "x86-64", ""), "lanes": SimtTarget(lanes=16),
    "items": SimtTarget(4, 256), "shuffles and tiles": SimtTarget(4, 256, 32, True, True),
}  # fmt: skip
FUSED = {
    **CASES, "softmax": (floats(64, 300),), "layer_norm": (floats(8, 64), [64], floats(64), floats(64)),
    "linear": (floats(64, 300), floats(300, 40), floats(40)), "cross_entropy": (floats(8, 10), np.zeros(8, int)),
    "scaled_dot_product_attention": (floats(1, 16, 2, 8),) * 3,
    "batch_norm": (floats(4, 3, 5, 5), *[floats(3)] * 4), "var": (floats(70, 33), [1]),
}  # fmt: skip
#: Transforms have steps of their own on processors, and are products on work-groups.
OF_THEIR_OWN = {"fft_r2c"}


def dump(program, target):
    """The kinds of a program's groups, and the text of their forms."""
    plan = plan_program(lower_program(to_primitives(program, {}), target, target.schedules), target)
    return [(step.group.kind.__class__.__name__, *map(lines_of, step.forms)) for step in plan.steps]


def lines_of(form):
    try:
        return print_form(form)[0]
    except TypeError:
        return form.summary().rpartition(",")[0]  # of attention; its last part is what a schedule keeps of scores


@pytest.mark.parametrize("name", sorted(FUSED.keys() - OF_THEIR_OWN))
def test_fusion_decides_the_same_for_every_machine(name):
    """What is one kernel for this processor is one for any, work-groups included, and computes the same."""
    program = program_of(name, *FUSED[name])
    wanted = dump(program, Target.host())
    assert wanted
    for machine, target in MACHINES.items():
        assert dump(program, target) == wanted, machine
