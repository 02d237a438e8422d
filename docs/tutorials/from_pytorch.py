# %% [markdown]
# # Coming from PyTorch
#
# A training loop reads nearly the same. The names that differ most are in the table; then the same program, and what
# surprises.
#
# | PyTorch | argosy |
# |---|---|
# | `import torch` | `import argosy as paddle` |
# | `torch.tensor(x, requires_grad=True)` | `paddle.to_tensor(x, stop_gradient=False)` |
# | `x.requires_grad` | `not x.stop_gradient` |
# | `torch.nn.Module` | `paddle.nn.Layer` |
# | `nn.Linear(4, 8, bias=False)` | `nn.Linear(4, 8, bias_attr=False)` |
# | weight of `Linear`: `[out, in]` | `[in, out]` |
# | `optimizer = Adam(model.parameters(), lr=1e-3)` | `optimizer = Adam(1e-3, parameters=model.parameters())` |
# | `optimizer.zero_grad()` | `optimizer.clear_grad()` |
# | `torch.compile(f)` | `paddle.jit.to_static(f, full_graph=True)`: the whole training step |
# | `model.load_state_dict(d)` | `model.set_state_dict(d)` |
# | `model.train()`, `model.eval()` | the same |
# | `torch.no_grad()` | `paddle.no_grad()` |
# | `x.view(2, -1)`, `x.permute(1, 0)` | `x.reshape([2, -1])`, `x.transpose([1, 0])` |
# | `x.size(0)`, `x.dim()` | `x.shape[0]`, `x.ndim` |
# | `torch.cat`, `torch.stack` | `paddle.concat`, `paddle.stack` |
# | `x.sum(dim=1, keepdim=True)` | `x.sum(axis=1, keepdim=True)`; `dim` is understood |
# | `x.to("cuda")` | a tensor lies where it was made; see the page on devices |
# | `torch.autograd.Function` | `paddle.autograd.PyLayer` |
# | `torch.func.jacrev`, `hessian` | `paddle.autograd.jacobian`, `hessian` |
# | `torch.utils.data` | `paddle.io` |
# | `DistributedDataParallel(model)` | `dist.shard_layer(model, mesh)` |
# | `torch.save`, `torch.load` | `paddle.save`, `paddle.load`: data only, never code |
# | `torch.export` | `paddle.jit.save` |

# %%
import argosy as paddle
from argosy import nn

paddle.seed(0)


class Network(nn.Layer):
    """What would be a Module."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(8, 64)
        self.out = nn.Linear(64, 3)

    def forward(self, x):
        return self.out(nn.functional.relu(self.hidden(x)))


model = Network()
optimizer = paddle.optimizer.AdamW(0.01, parameters=model.parameters())
loss_function = nn.CrossEntropyLoss()

inputs = paddle.randn([300, 8])
labels = inputs[:, :3].argmax(axis=1)
loader = paddle.io.DataLoader(paddle.io.TensorDataset([inputs, labels]), batch_size=50, shuffle=True)

for _ in range(10):
    for x, y in loader:
        loss = loss_function(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
print(
    f"loss {float(loss):.3f}, accuracy {float((model(inputs).argmax(axis=1) == labels).astype('float32').mean()):.3f}"
)

# %% [markdown]
# ## Weights from PyTorch
#
# Weights of `Linear` are transposed; all else keeps its layout. A file of safetensors is read by `paddle.load`,
# whoever wrote it.

# %%
import numpy as np

rng = np.random.default_rng(0)
theirs = {  # as state_dict() of the same network in PyTorch has them
    "hidden.weight": rng.standard_normal((64, 8), dtype="float32"),
    "hidden.bias": np.zeros(64, "float32"),
    "out.weight": rng.standard_normal((3, 64), dtype="float32"),
    "out.bias": np.zeros(3, "float32"),
}
linear = {f"{name}.weight" for name, layer in model.named_sublayers() if isinstance(layer, nn.Linear)}
model.set_state_dict({name: w.T if name in linear else w for name, w in theirs.items()})
np.abs(model.hidden.weight.numpy() - theirs["hidden.weight"].T).max()

# %% [markdown]
# ## What surprises
#
# - Sizes stand in a list: `x.reshape([2, -1])`, `paddle.zeros([2, 3])`.
# - Gradients add up until `clear_grad()`, as in PyTorch.
# - A learning rate that changes is an object that the optimizer gets; its `step()` is yours to call.

# %%
schedule = paddle.optimizer.lr.CosineAnnealingDecay(0.01, T_max=100)
optimizer = paddle.optimizer.SGD(schedule, parameters=model.parameters())
for _ in range(50):
    schedule.step()
optimizer.get_lr()

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
attempt(lambda: nn.Linear(4, 8, bias=False))  # it is bias_attr

# %%
attempt(lambda: paddle.optimizer.Adam(model.parameters(), lr=1e-3))  # the rate comes first

# %%
attempt(lambda: inputs.to("cuda"))  # cuda is a device that this machine lacks

# %%
attempt(lambda: model.load_state_dict({"hidden.weight": theirs["hidden.weight"]}))  # not transposed
