# %% [markdown]
# # Coming from Paddle
#
# argosy has Paddle 3's names, arguments, defaults, results and state dicts. A script changes one import:
#
# ```python
# import argosy as paddle
# ```
#
# A library that imports `paddle` itself gets argosy in its place when a program begins with `import
# argosy.as_paddle`, or when it is started as `python -m argosy.as_paddle train.py`.

# %%
import argosy as paddle

paddle.seed(0)
paddle.version.full_version  # the version of Paddle whose interface this is

# %% [markdown]
# ## What is called the same
#
# | you write | and argosy |
# |---|---|
# | `paddle.nn`, `optimizer`, `io`, `amp`, `metric`, `vision`, `distribution`, ... | has the same modules |
# | `paddle.Model(...).fit(...)` | has the same loop and callbacks |
# | `paddle.jit.to_static`, `paddle.jit.save`, `paddle.jit.load` | captures programs; saves `.pir` with `.safetensors`, reads Paddle 3's `.json` too |
# | `paddle.save`, `paddle.load` | reads and writes `.pdparams` and `.pdopt`, and safetensors |
# | `paddle.inference` | runs exported programs |
# | `paddle.distributed` | annotates tensors: `shard_tensor`, `ProcessMesh`, `Shard`, `Replicate` |


# %%
class Squares(paddle.io.Dataset):
    """Numbers and their squares."""

    def __len__(self):
        return 256

    def __getitem__(self, i):
        x = paddle.to_tensor([i / 128 - 1.0]).numpy()
        return x, x * x


model = paddle.Model(paddle.nn.Sequential(paddle.nn.Linear(1, 32), paddle.nn.ReLU(), paddle.nn.Linear(32, 1)))
model.prepare(paddle.optimizer.Adam(0.01, parameters=model.parameters()), paddle.nn.MSELoss())
model.fit(Squares(), batch_size=32, epochs=8, verbose=0)
model.evaluate(Squares(), batch_size=32, verbose=0)

# %% [markdown]
# ## Files are the same
#
# What Paddle wrote is read without executing anything in it, and what is written here is what Paddle reads.

# %%
import tempfile
from pathlib import Path

path = str(Path(tempfile.mkdtemp()) / "model.pdparams")
paddle.save(model.network.state_dict(), path)
{name: value.shape for name, value in paddle.load(path).items()}

# %% [markdown]
# ## What is different, and better to know
#
# - `to_static(full_graph=True)` takes the whole training step: `backward()` and the optimizer's step are part of the program.
# - `paddle.seed` starts another generator of random numbers. Compare models by loaded weights, not by seeds.
# - `amp.auto_cast` computes in bfloat16 on the cpu, where Paddle's does nothing.
# - Derivatives can be differentiated again without end, in captured functions, too.
#
# [FROM_PADDLE](../FROM_PADDLE.md) has all of it, with the cases whose numbers differ.

# %%
x = paddle.to_tensor([0.5], stop_gradient=False)
value = paddle.sin(x)
for _ in range(4):
    (value,) = paddle.grad(value, x, create_graph=True)
value, paddle.sin(x)  # the fourth derivative of the sine is the sine

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
attempt(lambda: paddle.set_device("gpu:0"))  # gpu is the device cuda, which this machine lacks

# %%
attempt(lambda: paddle.fluid)  # Paddle 1

# %%
attempt(lambda: paddle.onnx.export(model.network, "model"))  # not built; it names what is

# %%
attempt(
    lambda: paddle.nn.functional.binary_cross_entropy(paddle.rand([4, 1]), paddle.ones([4]))
)  # labels of another shape
