# %% [markdown]
# # Write a pass
#
# A pass changes a program: it simplifies, expands, places or measures. It is a frozen dataclass, its fields are its
# options, and it is found by its name, in Python, in text and on the command line. Programs are data: this page
# builds one, changes it, and runs both.

# %%
from dataclasses import dataclass

import numpy as np

import argosy as paddle
from argosy_pir import Program
from argosy_pir.passes import Pass, PassManager, register_pass

paddle.seed(0)

# %% [markdown]
# ## A program to work on
#
# Any captured function has one. Operators decompose into primitives (`prim.*`), of which there are few; passes are
# written for those.


# %%
@paddle.jit.to_static(full_graph=True)
def function(x):
    return paddle.exp(x) * paddle.exp(x + 1.0)


function(paddle.ones([4]))
program = Program.parse(str(function.main_program))
PassManager("decompose,cse,dce").run(program)
print(program)

# %% [markdown]
# ## The pass
#
# exp(a) exp(b) is exp(a + b): one exponential less. The pass looks for products of two exponentials, makes the sum,
# and puts the new value in the place of the old one. It returns whether it changed anything.


# %%
from argosy_pir import Builder


@register_pass("merge-exponentials")
@dataclass(frozen=True)
class MergeExponentials(Pass):
    """Replace products of exponentials by the exponential of the sum."""

    at_most: int = 1000

    def run(self, program: Program) -> bool:
        """Change ``program``; say whether it was changed."""
        found = [op for op in program.walk() if op.name == "prim.mul" and all(map(_is_exponential, op.operands))]
        for op in found[: self.at_most]:
            builder = Builder.before(op)
            exponents = [operand.owner.operand(0) for operand in op.operands]
            total = builder.create("prim.add", exponents).result
            op.replace_with([builder.create("prim.exp", [total]).result])
        return bool(found)


def _is_exponential(value) -> bool:
    return getattr(value.owner, "name", "") == "prim.exp"


before = program.clone()
PassManager("merge-exponentials,dce").run(program)  # verified after each pass
print(program)

# %% [markdown]
# ## It still computes the same
#
# The reference interpreter runs programs of primitives with numpy, slowly and obviously right. It is what passes are
# tested against.

# %%
from argosy_hwadapt import device
from argosy_phi_ops.compiler import get_compiler
from argosy_tensorcore.tensor import Tensor


def run(program, x):
    executable = get_compiler("reference").compile(program, device("cpu"))
    return executable.run([Tensor(x).payload], [])[0].array()


x = np.linspace(-1, 1, 4, dtype="float32")
print(np.abs(run(before, x) - run(program, x)).max())

# %% [markdown]
# ## Options, text, and the command line
#
# Fields are options, in Python and in text; `python -m argosy_pir opt FILE -p "merge-exponentials{at-most=1}"` runs
# it on a file, once the pass is an entry point in the group `argosy.passes`.

# %%
again = before.clone()
PassManager("merge-exponentials{at-most=0},dce").run(again)
sum(op.name == "prim.exp" for op in again.walk())

# %% [markdown]
# ## Mistakes that people make here


# %%
def attempt(call):
    """Print what a wrong call says."""
    try:
        call()
    except Exception as error:
        print(f"{type(error).__name__}: {error}\n")
    else:
        raise AssertionError("nothing was said")


@register_pass("break-the-program")
@dataclass(frozen=True)
class BreakTheProgram(Pass):
    """Adds a vector to a matrix of another size, which no operation does by itself."""

    def run(self, program: Program) -> bool:
        """Never comes to its end."""
        op = next(op for op in program.walk() if op.name == "prim.exp")
        Builder.before(op).create("prim.add", [op.operand(0)])  # one operand is missing
        return True


# %%
attempt(lambda: PassManager("break-the-program").run(program.clone()))

# %%
attempt(lambda: PassManager("merge-exponential").run(program))

# %%
attempt(lambda: PassManager("merge-exponentials{most=3}").run(program))

# %%
attempt(
    lambda: Program.parse(
        "program @p(%x: tensor<[4], float32>) {\n  %1 = prim.exp(%z) : tensor<[4], float32>\n  return(%1)\n}"
    )
)
