# %% [markdown]
# # The compiled training step, and how to look into it
#
# A function under `paddle.jit.to_static(full_graph=True)` is captured when it is first called: what it computes
# becomes a program, which is differentiated, simplified, compiled to machine code and from then on called instead of
# the Python. This page looks at each of these stages.

# %%
import argosy as paddle

paddle.seed(0)
model = paddle.nn.Sequential(paddle.nn.Linear(16, 64), paddle.nn.GELU(), paddle.nn.Linear(64, 1))
optimizer = paddle.optimizer.AdamW(1e-2, parameters=model.parameters())


@paddle.jit.to_static(full_graph=True)
def step(x, y):
    loss = paddle.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    return loss


x = paddle.randn([256, 16])
y = x.sum(-1, keepdim=True)
float(step(x, y))

# %% [markdown]
# ## The program
#
# Inputs, states (parameters, moments, the learning rate) and operations, as text that reads back. Gradients are one
# operation, `ad.gradient`, until a pass expands it.

# %%
print("\n".join(str(step.main_program).splitlines()[:24]))

# %% [markdown]
# ## What it costs to call
#
# The second call runs no Python of the function. Sizes, dtypes, closures and attributes are guarded; when one of them
# changes, the function is captured anew, and the old program stays for when it comes back.

# %%
with paddle.jit.count_compiles() as compiles:
    for _ in range(5):
        step(x, y)
    print("same sizes:", compiles.value)
    step(x[:100], y[:100])
    print("another size:", compiles.value)
    step(x, y)
    print("the first size again:", compiles.value)

# %% [markdown]
# ## `explain`
#
# `argosy.explain` captures and compiles a call, measures it on copies of its states, and shows everything: passes,
# programs, kernels with their traffic and lines, the memory plan.

# %%
report = paddle.explain(step, x, y)
[section.title for section in report.sections]

# %%
print(report["kernels"])

# %% [markdown]
# `report.save("report.html")` writes one page for a browser, without a network.

# %%
import tempfile
from pathlib import Path

page = Path(tempfile.mkdtemp()) / "report.html"
report.save(str(page))
print(f"{page.name}: {page.stat().st_size // 1024} KiB")

# %% [markdown]
# ## Compiled and eager, side by side

# %%
import time


def eager(x, y):
    loss = paddle.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    return loss


for name, function in (("eager", eager), ("compiled", step)):
    function(x, y)
    start = time.perf_counter()
    for _ in range(50):
        function(x, y)
    print(f"{name:9} {(time.perf_counter() - start) / 50 * 1e3:.3f} ms a step")

# %% [markdown]
# ## Graph breaks
#
# With `full_graph=True` a function is one program or an error. Without it, Python goes on where a value is needed
# (`print`, `float`), and what stands around is compiled in parts. `paddle.jit.report()` says where and why.


# %%
@paddle.jit.to_static
def with_a_print(x):
    y = paddle.tanh(x) * 2
    print("the mean is", round(float(y.mean()), 3))
    return y + 1


with_a_print(x)
with_a_print(x)
print(paddle.jit.report())

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


@paddle.jit.to_static(full_graph=True)
def needs_a_number(x):
    return x * x.sum().numpy()  # an array of numbers, while there is only a program


@paddle.jit.to_static(full_graph=True)
def sides_differ(x):
    if x.sum() > 0:
        result = x
    return result  # not set on the other side


@paddle.jit.to_static(full_graph=True)
def out_of_range(x, i):
    return x[i]


# %%
attempt(lambda: needs_a_number(x))

# %%
attempt(lambda: sides_differ(x))

# %%
attempt(lambda: out_of_range(x, paddle.to_tensor([300])))
