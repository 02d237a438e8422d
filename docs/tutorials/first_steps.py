# %% [markdown]
# # First steps
#
# This page trains a small network from nothing, compiles the training step, saves the model and reads it back. It
# takes five minutes to read. Everything here is an ordinary Python program; you can run it as a script or as a
# notebook.

# %%
import numpy as np

import argosy as paddle

paddle.seed(0)

# %% [markdown]
# ## Tensors
#
# A tensor is an array with a dtype that can be differentiated. Its functions are those of Paddle, and most of them
# have the names of numpy.

# %%
x = paddle.to_tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
x.mean(axis=1), x @ x.T, x[:, 1:]

# %% [markdown]
# Tensors and numpy arrays become each other without effort:

# %%
paddle.to_tensor(np.linspace(0, 1, 4, dtype="float32")) + x.numpy()[0, 0]

# %% [markdown]
# ## Gradients
#
# A tensor with `stop_gradient=False` is one that we want derivatives by. `backward()` leaves them in `grad`.

# %%
w = paddle.to_tensor([1.0, -2.0], stop_gradient=False)
loss = (w**2).sum() + w[0] * w[1]
loss.backward()
w.grad

# %% [markdown]
# ## A model
#
# We fit a curve: noisy samples of a sine. A model is a `Layer`; `Sequential` is one that calls its parts one after
# the other.

# %%
points = paddle.linspace(-3, 3, 200).reshape([-1, 1])
values = paddle.sin(2 * points) + 0.1 * paddle.randn([200, 1])

model = paddle.nn.Sequential(
    paddle.nn.Linear(1, 32),
    paddle.nn.Tanh(),
    paddle.nn.Linear(32, 32),
    paddle.nn.Tanh(),
    paddle.nn.Linear(32, 1),
)
optimizer = paddle.optimizer.Adam(0.01, parameters=model.parameters())
model

# %% [markdown]
# ## Training
#
# A step computes the loss, its gradients, and what the optimizer makes of them. The decorator `to_static` captures
# all three as one program when the function is first called, and compiles it. The Python of the function does not run
# again.


# %%
@paddle.jit.to_static(full_graph=True)
def step(x, y):
    loss = paddle.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    return loss


losses = [float(step(points, values)) for _ in range(800)]
print(f"loss of the first step {losses[0]:.4f}, of the last {losses[-1]:.4f}")

# %% [markdown]
# A picture of it (matplotlib comes with `python -m pip install matplotlib`, or with the extra `plot`):

# %%
from matplotlib import pyplot

figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3), layout="constrained")
left.semilogy(losses)
left.set(title="loss", xlabel="step")
right.plot(points.numpy(), values.numpy(), ".", markersize=3, label="samples")
with paddle.no_grad():
    right.plot(points.numpy(), model(points).numpy(), label="model")
right.legend()
pyplot.show()

# %% [markdown]
# ## Saving and loading
#
# `save` writes nested states, here into one safetensors file. A new model takes them and gives the same values.

# %%
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
paddle.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, str(folder / "checkpoint.safetensors"))

again = paddle.nn.Sequential(
    paddle.nn.Linear(1, 32), paddle.nn.Tanh(), paddle.nn.Linear(32, 32), paddle.nn.Tanh(), paddle.nn.Linear(32, 1)
)
again.set_state_dict(paddle.load(str(folder / "checkpoint.safetensors"))["model"])
bool(paddle.allclose(again(points), model(points)))

# %% [markdown]
# ## Mistakes that people make here
#
# Each of these calls is wrong. What is printed is what you see.


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
attempt(lambda: x @ x)  # inner sizes that differ

# %%
attempt(lambda: model(paddle.ones([4, 2])))  # a batch with another number of features

# %%
attempt(lambda: loss.backward())  # a second time: what the first one needed is gone; retain_graph=True keeps it

# %%
attempt(lambda: paddle.optimizer.Adam(-0.1, parameters=model.parameters()))  # a rate below zero

# %%
attempt(lambda: paddle.load(str(folder / "chekpoint.safetensors")))  # a file of another name

# %%
attempt(lambda: again.load_state_dict({"0.weight": paddle.ones([3, 3])}))  # weights of another model
