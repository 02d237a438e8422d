"""``python compile_everywhere.py FAMILY PROCESSOR ...`` compiles a family of kernels for processors, and runs nothing.

The name of each kernel is written before LLVM sees it, since LLVM may end the process. `test_processors` runs it, with
the folders of the tests that it takes kernels from on the path.
"""

import sys
from itertools import product

import numpy as np
from products import Product, bias_relu
from programs import build, values
from test_attention import Attention, causal, where
from test_gemm import scale_and_add_nothing, sum_columns
from test_totality import CALLS, DTYPES

from argosy_cinn.assembly.building import assemble_program
from argosy_cinn.fuel import Budget
from argosy_cinn.pipeline import lower_program
from argosy_cinn.printers.llvm import Module
from argosy_cinn.runtime.cache import cache_key, default_cache
from argosy_cinn.runtime.jit import compile_object
from argosy_cinn.target import Target
from argosy_phi_ops import prim
from argosy_phi_ops.errors import DTypeError
from argosy_phi_ops.passes.primitives import to_primitives

#: (element, compute, narrow, unsigned) of products.
ELEMENTS = [
    ("float", "float", False, (False, False)),
    ("float", "float", True, (False, False)),
    ("double", "double", False, (False, False)),
    ("bfloat", "float", False, (False, False)),
    ("half", "float", False, (False, False)),
    ("i8", "i32", False, (False, False)),
    ("i8", "i32", False, (True, False)),
    ("i32", "i32", False, (False, False)),
    ("i64", "i64", False, (False, False)),
]
#: (m, n, k, layouts): with tails everywhere, without (and turned), and skinny ones.
SHAPES = [(37, 75, 503, "nn"), (37, 75, 503, "tn"), (37, 75, 503, "ss"), (64, 256, 512, "nt"),
          (2, 65, 333, "nn"), (2, 65, 333, "nt"), (70, 1, 300, "nn")]  # fmt: skip
FLOATS = ("float32", "float64", "float16", "bfloat16")


def products(target):
    """Matrix products: kinds of elements, shapes and layouts; prologues, epilogues, sums of columns."""
    for element, compute, narrow, unsigned in ELEMENTS:
        options = {"element": element, "compute": compute, "narrow": narrow, "unsigned": unsigned}
        fixed = [{**options, "shape": shape} for shape in SHAPES]
        yield f"products {options}", module_of(target, [{**options, "dynamic": True}, *fixed])
    changes = product((bias_relu, scale_and_add_nothing, sum_columns), ("nn", "tn"), (False, True))
    changed = [{"shape": (37, 75, 503, kind), "change": change, "narrow": narrow} for change, kind, narrow in changes]
    yield "products with more around them", module_of(target, changed)


def module_of(target, several):
    """The text of a module of several products."""
    module = Module(target)
    for number, options in enumerate(several):
        Product(*options.pop("shape", (0, 0, 0, "nn")), module=module, name=f"p{number}_", **options)
    return module.text()


def arrays(dtype, *shapes):
    return [np.empty(shape, values(np.random.default_rng(0), (1,), dtype).dtype) for shape in shapes]


def primitives(target):
    """Every primitive that takes a dtype, in one program for each of those that machines differ in most."""
    for dtype in ("bfloat16", "float16", "int8"):
        yield dtype, text(build(every_primitive, arrays(dtype, (4, 3), (4, 3))), target)


def every_primitive(x, y):
    found = []
    for name, call in CALLS.items():
        if name == "dim_size":  # a number of the plan, which is no code
            continue
        try:
            made = call(x, y)
        except DTypeError:
            continue
        found += made if isinstance(made, (tuple, list)) else [made]
    return found


def conversions(target):
    """Each dtype to each, over rows with tails: loads, conversions and stores of vectors."""
    for dtype in DTYPES:
        program = build(lambda x: [prim.cast(prim.neg(x) if x.dtype != "bool" else x, dtype=to) for to in DTYPES],
                        arrays(dtype, (3, 37)))  # fmt: skip
        yield dtype, text(program, target)


def rows(target):
    """Softmax and a norm along rows, sums of columns, a gather and choices, as fused kernels."""
    for dtype in FLOATS:
        yield f"rows {dtype}", text(build(row_work, arrays(dtype, (33, 75), (75,))), target)
    for dtype in ("float32", "bfloat16"):
        heads = arrays(dtype, *[(2, 3, 75, 20)] * 4)
        yield f"attention {dtype}", text(build(Attention(where(causal)).both, heads), target)


def row_work(x, w):
    like = {"shape": x.shape, "axes": (0,)}
    top = prim.broadcast(prim.reduce_max(x, axes=(1,)), **like)
    e = prim.exp(prim.sub(x, top))
    soft = prim.div(e, prim.broadcast(prim.reduce_sum(e, axes=(1,)), **like))
    scale = prim.rsqrt(prim.add(prim.reduce_sum(prim.mul(x, x), axes=(1,)), 1.0))
    normed = prim.mul(prim.mul(x, prim.broadcast(scale, **like)), prim.broadcast(w, shape=x.shape, axes=(1,)))
    chosen = prim.select(prim.gt(soft, normed), prim.tanh(soft), prim.erf(normed))
    return [
        soft,
        chosen,
        prim.reduce_sum(chosen, axes=(0,)),
        prim.argmax(normed, axis=1),
        prim.cast(soft, dtype="int8"),
    ]


def convolutions(target):
    """Images and weights' gradients that products read through windows, with the strides that are read differently."""
    for dtype in ("bfloat16", "float16"):
        for stride in (1, 2):
            image = {"strides": (stride,) * 2, "padding": ((1, 1),) * 2, "lhs_dilation": (1, 1), "groups": 1}

            def forward(x, w, image=image):
                return prim.conv(x, w, rhs_dilation=(1, 1), **image)

            def gradient(x, g, stride=stride):
                return prim.conv(x, g, strides=(1, 1), padding=((1, 1),) * 2, lhs_dilation=(1, 1),
                                 rhs_dilation=(stride,) * 2, groups=1)  # fmt: skip

            yield f"{dtype} by {stride}", text(build(forward, arrays(dtype, (2, 5, 40, 41), (9, 5, 3, 3))), target)
            filters = (9, 2, *(-(-n // stride) for n in (40, 41)))
            yield f"{dtype} weights by {stride}", text(build(gradient, arrays(dtype, (5, 2, 40, 41), filters)), target)


def text(program, target):
    """The LLVM assembly of a program."""
    _, assembly = assemble_program(lower_program(to_primitives(program), target), target, Budget())
    return assembly.module.text()


FAMILIES = {f.__name__: f for f in (products, primitives, conversions, rows, convolutions)}


def main(family, *processors):
    """Compile a family; LLVM takes again what this version of it took before, which the object cache remembers."""
    made, cache = {}, default_cache()
    for processor in processors:
        target = Target.from_name(processor)
        if target.key[::2] not in made:  # what processors of equal features share
            made[target.key[::2]] = list(FAMILIES[family](target))
        for name, code in made[target.key[::2]]:
            sys.stdout.write(f"{processor}: {name}\n")
            sys.stdout.flush()
            key = cache_key(code, target.key, ("compiles",))
            if cache.get(key) is None:
                compile_object(code, target)
                cache.put(key, b"compiled")


if __name__ == "__main__":
    main(*sys.argv[1:])
