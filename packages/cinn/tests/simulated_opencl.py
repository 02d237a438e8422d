"""Run kernels in a simulator of OpenCL that prints what work-items race for: for `test_simt_races`.

python simulated_opencl.py LOADER [racy]
"""

import sys
from pathlib import Path

import numpy as np
from programs import build

from argosy_cinn.compiler import CinnCompiler
from argosy_cinn.printers.work_groups import SimtTarget
from argosy_cinn.simt import order, sources
from argosy_hwadapt import device
from argosy_hwadapt.opencl import library
from argosy_phi_ops import get_operator
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir.types import TensorType
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

RACY = b"""
__kernel void racy(__global char *x, long start) {
    __local int shared[64];
    shared[get_local_id(0)] = get_local_id(0);
    ((__global int *)(x + start))[get_local_id(0)] = shared[63 - get_local_id(0)];
}
"""


def random(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def check(name, *arrays, **settings):
    """An operator on the simulator beside the interpreter."""
    op = get_operator(name)
    operands, attributes = op.signature.bind(tuple(map(Tensor, arrays)), settings)
    program = op.expand([TensorType(tuple(x.shape), x.dtype.name) for x in operands], attributes).program
    check_program(program, *arrays)


def check_program(program, *arrays):
    there = device("opencl")
    made = CinnCompiler().compile(program, there).bind(())([StridedArray.from_array(a, there) for a in arrays])
    wanted, _ = interpret(program, list(arrays))
    for x, y in zip(made, wanted, strict=True):
        np.testing.assert_allclose(x.to_host(), y, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    library.WHEELS, library._LOADER = {}, sys.argv[1]
    assert "Oclgrind" in device("opencl").info.name
    if sys.argv[2:] == ["racy"]:
        buffer = device("opencl").allocate(256)
        kernel = device("opencl").load(device("opencl").build("opencl-c", RACY), "racy")
        device("opencl").launch(kernel, (1,), (64,), args=(buffer,))
        device("opencl").synchronize()
    else:
        check("softmax", random(5, 37), axis=-1)
        check("var", random(7, 65), axis=[1])
        check("sum", random(40, 7), axis=[0])
        check("gelu", random(33, 5))
        check("argsort", random(3, 21), axis=1)
        order._LONGEST = 20
        check("argsort", random(2, 70), axis=1)
        check("cumsum", random(5, 7), axis=0)
        check("softmax", random(2, 4200), axis=-1)
        check("matmul", random(5, 7), random(7, 9))
        check("matmul", random(19, 70), random(21, 70), transpose_y=True)
        check("matmul", random(70, 3), random(70, 17), transpose_x=True)
        check("fft_r2c", random(3, 34), axes=[1])
        check("lu_factor", random(2, 5, 3))
        check("gather_mm", random(7, 1, 3), np.arange(7).reshape(7, 1) % 2, random(2, 3, 5))
        sys.path.append(str(Path(__file__).parent / "attention"))
        from test_attention import Attention, causal, where

        for mask, (m, n), sizes in ((where(causal), (21, 19), (5, 3)), (None, (3, 40), (17, 18))):
            q, k, v, g = (
                random(2, 1, m, sizes[0]),
                random(2, 1, n, sizes[0]),
                random(2, 1, n, sizes[1]),
                random(2, 1, m, sizes[1]),
            )
            check_program(build(Attention(mask).both, (q, k, v, g), ()), q, k, v, g)
        check("conv2d", random(1, 2, 5, 7), random(3, 2, 3, 3), padding=[1, 1])
        for machine in (SimtTarget(4, 32), SimtTarget(4, 32, 4)):  # several rows in a group
            sources.target_of = lambda info, machine=machine: machine
            check("softmax", random(5, 37), axis=-1)
            check("var", random(3, 129), axis=[1])
            check("sum", random(9, 7), axis=[0])
        sources.target_of = lambda info: SimtTarget(4, 8, 4, matrix_tiles=True)
        check("matmul", random(37, 7), random(7, 9))
    sys.stdout.write("done\n")
