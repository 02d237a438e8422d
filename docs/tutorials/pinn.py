# %% [markdown]
# # From an equation to its solution
#
# A network can be the solution of a differential equation: we make its residual, the amount by which it fails the
# equation, small at many points. Derivatives of the network by its inputs are ordinary calls; the compiler computes
# all of them in one sweep.
#
# The equation is that of a vibrating string, u_tt = u_xx on 0 < x < 1, 0 < t < 1, fixed at its ends. At t = 0 it has
# the shape of a sine, and does not move. Its exact solution is sin(pi x) cos(pi t), so we can see how far we are.

# %%
import numpy as np
from matplotlib import pyplot

import argosy as paddle

paddle.seed(0)
rng = np.random.default_rng(0)

# %% [markdown]
# ## The network fulfils what is known
#
# Shape at the beginning, rest at the beginning, and fixed ends are built into u: where t is 0 the added part vanishes
# with its derivative by t, and at x = 0 and x = 1 it vanishes, too. What is left to learn is the equation.

# %%
network = paddle.nn.Sequential(
    paddle.nn.Linear(2, 32), paddle.nn.Tanh(), paddle.nn.Linear(32, 32), paddle.nn.Tanh(), paddle.nn.Linear(32, 1)
)


def u(points):
    x, t = points[:, 0], points[:, 1]
    return paddle.sin(np.pi * x) + t**2 * x * (1 - x) * network(points)[:, 0]


# %% [markdown]
# ## The residual
#
# Gradients of gradients, written as they are.


# %%
def derivative(value, points, axis):
    (slope,) = paddle.grad(value.sum(), points, create_graph=True)
    return slope[:, axis]


def residual(points):
    value = u(points)
    u_xx = derivative(derivative(value, points, 0), points, 0)
    u_tt = derivative(derivative(value, points, 1), points, 1)
    return u_tt - u_xx


# %% [markdown]
# ## Training
#
# The whole step is one program: network, derivatives, the gradient by the parameters, Adam.

# %%
steps = 2500
schedule = paddle.optimizer.lr.CosineAnnealingDecay(5e-3, T_max=steps, eta_min=5e-5)
optimizer = paddle.optimizer.Adam(schedule, parameters=network.parameters())


@paddle.jit.to_static(full_graph=True)
def step(points):
    loss = (residual(points) ** 2).mean()
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    return loss


def sample(count=400):
    return paddle.to_tensor(rng.uniform(0, 1, (count, 2)).astype("float32"), stop_gradient=False)


losses = []
points = sample()
for number in range(steps):
    if number % 25 == 0:
        points = sample()
    loss = step(points)
    schedule.step()
    if number % 25 == 0:
        losses.append(float(loss))
print(f"residual: {losses[0]:.3f} at the beginning, {losses[-1]:.2e} at the end")

# %% [markdown]
# ## The solution

# %%
x, t = np.linspace(0, 1, 81), np.linspace(0, 1, 81)
grid = np.stack([a.ravel() for a in np.meshgrid(x, t, indexing="ij")], -1).astype("float32")
with paddle.no_grad():
    found = u(paddle.to_tensor(grid)).numpy().reshape(81, 81)
exact = np.sin(np.pi * x)[:, None] * np.cos(np.pi * t)[None]

figure, places = pyplot.subplots(1, 4, figsize=(15, 3), layout="constrained")
for place, title, values in zip(
    places, ("network", "exact", "difference"), (found, exact, found - exact), strict=False
):
    image = place.pcolormesh(x, t, values.T, shading="gouraud", cmap="viridis" if title != "difference" else "RdBu_r")
    place.set(title=title, xlabel="x", ylabel="t")
    figure.colorbar(image, ax=place)
places[3].semilogy(np.arange(len(losses)) * 25, losses)
places[3].set(title="mean squared residual", xlabel="step")
pyplot.show()
print(f"relative error in the L2 norm: {np.linalg.norm(found - exact) / np.linalg.norm(exact):.1e}")

# %% [markdown]
# ## What the compiler made of the derivatives
#
# Two nested derivatives by two axes would be a long graph of gradients of gradients. The pass `taylor-mode` turned
# them into forward sweeps. Here is the list of what was done, and of the kernels:

# %%
report = paddle.explain(step, points, measure=False)
print(report["passes"])

# %%
print("\n".join(report["kernels"].splitlines()[:12]))

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
attempt(lambda: residual(paddle.rand([4, 2])))  # points that do not want gradients: stop_gradient=False is missing
linear = paddle.nn.Linear(2, 1)
p = sample(4)


def second_of_linear():
    (slope,) = paddle.grad(linear(p).sum(), p, create_graph=True)
    paddle.grad(slope.sum(), p)


# %%
attempt(second_of_linear)  # zero by its structure; allow_unused=True gives None
first_only = paddle.grad(u(p).sum(), p)[0]  # create_graph is missing

# %%
attempt(lambda: paddle.grad(first_only.sum(), p))
