# %% [markdown]
# # Write an operator of your own
#
# An operator is a function that every part of the framework knows: it runs eagerly, stands in captured programs, is
# compiled or called, split over ranks, differentiated, and saved. One decorator makes one of your own. Its body is
# numpy, tensors, or C.

# %%
import numpy as np

import argosy as paddle

paddle.seed(0)


# %% [markdown]
# ## A body of numpy
#
# `axes` says how results depend on operands: here elementwise. It gives shapes, and the rule by which it is split
# over ranks.


# %%
@paddle.library.custom_op("tutorial.damped", axes="... -> ...")
def damped(x: paddle.Tensor, rate: float = 0.5) -> paddle.Tensor:
    """A sine that fades: sin(x) exp(-rate x)."""
    return np.sin(x) * np.exp(-np.float32(rate) * x)  # x is an array here


@damped.gradient
def _(g, result, x, rate):
    return g * (paddle.cos(x) * paddle.exp(-rate * x) - rate * result)  # tensors: so it can be differentiated again


x = paddle.linspace(0, 6, 7)
damped(x), damped(x, rate=0.1)

# %% [markdown]
# The gradient is checked against differences, and the second one follows from it:

# %%
x.stop_gradient = False
(slope,) = paddle.grad(damped(x).sum(), x, create_graph=True)
difference = (damped(x + 1e-2) - damped(x - 1e-2)) / 2e-2
print("largest difference:", float((slope - difference).abs().max()))
(curvature,) = paddle.grad(slope.sum(), x)
curvature


# %% [markdown]
# ## In a compiled program
#
# The program calls the body where it stands; what is around it is compiled.


# %%
@paddle.jit.to_static(full_graph=True)
def program(x):
    return damped(paddle.tanh(x) * 2) + 1


print(program(x.detach()))
print("\n".join(line for line in str(program.main_program).splitlines() if "tutorial" in line))

# %% [markdown]
# ## A body of tensors
#
# A body that calls operators needs no gradient: it is made of operators that have one. It is compiled into the
# program like all else.


# %%
@paddle.library.custom_op("tutorial.swish", axes="... -> ...", on_tensors=True)
def swish(x: paddle.Tensor, beta: float = 1.0) -> paddle.Tensor:
    """x sigmoid(beta x)."""
    return x * paddle.nn.functional.sigmoid(beta * x)


(slope,) = paddle.grad(swish(x).sum(), x)
slope

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


@paddle.library.custom_op("tutorial.shorter", axes="... -> ...")
def shorter(x: paddle.Tensor) -> paddle.Tensor:
    """It says that it keeps the shape, and does not."""
    return x[1:]


@paddle.library.custom_op("tutorial.opaque", axes="... -> ...")
def opaque(x: paddle.Tensor) -> paddle.Tensor:
    """It has no gradient."""
    return np.floor(x)


# %%
attempt(lambda: shorter(x))

# %%
attempt(lambda: paddle.grad(opaque(x).sum(), x))

# %%
attempt(lambda: damped(x, rate="fast"))

# %%
attempt(lambda: paddle.library.custom_op("damped"))  # a name without a namespace
