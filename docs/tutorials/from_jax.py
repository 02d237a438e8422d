# %% [markdown]
# # Coming from JAX
#
# JAX transforms functions of arrays. argosy has tensors, layers and optimizers that hold state, and captures what a
# function does to them. The transformations are there, too.
#
# | JAX | argosy |
# |---|---|
# | `jax.numpy` | `paddle`: functions of tensors with numpy's names |
# | `jax.jit(f)` | `paddle.jit.to_static(f, full_graph=True)` |
# | `jax.grad(f)(x)` | `(g,) = paddle.grad(f(x), x)` |
# | `jax.jvp`, `jax.vjp`, `jax.jacobian`, `jax.hessian` | `argosy_autograd.jvp`, `vjp`; `paddle.autograd.jacobian`, `hessian` |
# | `jax.experimental.jet` | `paddle.autograd.jet`, and by itself where derivatives are nested |
# | `jax.custom_vjp`, `custom_jvp` | `paddle.autograd.custom_vjp`, `custom_jvp` |
# | `jax.lax.scan`, `while_loop`, `cond` | `paddle.science.scan`, `static.nn.while_loop`, `cond`; or Python's own loops and `if` |
# | `jax.random.key`, `split` | `paddle.seed`; draws are a function of seed, counter and index |
# | `jax.sharding.Mesh`, `NamedSharding` | `dist.ProcessMesh`, `dist.Shard` and `dist.Replicate` |
# | `jaxpr` | `f.main_program`, text that reads back |
# | `flax`, `optax` | `paddle.nn`, `paddle.optimizer` |
# | `jax.tree_util` | nested lists and dicts are arguments and results of captured functions as they are |

# %%
import argosy as paddle

paddle.seed(0)


def energy(x):
    return (paddle.sin(x) * x**2).sum()


x = paddle.to_tensor([0.5, 1.0, 2.0], stop_gradient=False)
(gradient,) = paddle.grad(energy(x), x, create_graph=True)
(second,) = paddle.grad(gradient.sum(), x)
gradient, second

# %% [markdown]
# ## Compiling
#
# A captured function may read and write state: parameters, statistics, the random generator. They become states of
# the program, which the compiled code changes in place.

# %%
weights = paddle.create_parameter([3], "float32")


@paddle.jit.to_static(full_graph=True)
def update(x, target, rate):
    loss = ((weights * x).sum() - target) ** 2
    (slope,) = paddle.grad(loss, weights)
    with paddle.no_grad():
        weights.subtract_(rate * slope)
    return loss


[round(float(update(x.detach(), paddle.to_tensor(1.0), 0.02)), 6) for _ in range(6)]

# %% [markdown]
# ## Loops
#
# Python's own loops over tensors become loops of the program. `scan` gives what each step leaves:

# %%
from argosy.science import scan


def body(carried, slices):
    (total,), (row,) = carried, slices
    return [total + row], [total * row]


(total,), (products,) = scan(body, [paddle.zeros([2])], [paddle.arange(6, dtype="float32").reshape([3, 2])])
total, products

# %% [markdown]
# ## Derivatives of many directions
#
# Jacobians and Hessians know batches, and derivatives of high order cost what Taylor mode costs.

# %%
h = paddle.autograd.hessian(energy(x), x)
h[:]

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


# %%
attempt(lambda: paddle.grad(energy(paddle.ones([3])), paddle.ones([3])))  # nothing wanted gradients

# %%
attempt(
    lambda: paddle.grad(energy(x), paddle.to_tensor([1.0], stop_gradient=False))
)  # the energy does not depend on it

# %%
attempt(lambda: scan(body, [paddle.zeros([2])], [paddle.zeros([3, 2]), paddle.zeros([4])]))  # axes of different lengths
