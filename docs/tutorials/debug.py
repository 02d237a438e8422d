# %% [markdown]
# # Profile and debug
#
# Where does the time go, where do the numbers go wrong, and which optimisation broke a program? Each question has a
# tool.

# %%
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import argosy as paddle

paddle.seed(0)
folder = Path(tempfile.mkdtemp())
model = paddle.nn.Sequential(paddle.nn.Linear(64, 256), paddle.nn.GELU(), paddle.nn.Linear(256, 64))
optimizer = paddle.optimizer.AdamW(1e-3, parameters=model.parameters())


@paddle.jit.to_static(full_graph=True)
def step(x):
    loss = ((model(x) - x) ** 2).mean()
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    return loss


x = paddle.randn([512, 64])
step(x)

# %% [markdown]
# ## Where the time goes
#
# `explain` shows each kernel of a compiled call: what it reads and writes, the time it takes, the share of what the
# machine could do.

# %%
report = paddle.explain(step, x)
print(report["kernels"])

# %% [markdown]
# ## A time line
#
# The profiler records eager operators, compiled programs and their kernels, and stretches that you mark. The file
# opens in Perfetto or in Chrome's tracing page; here the same events are drawn with matplotlib.

# %%
from argosy import profiler

with profiler.Profiler(on_trace_ready=profiler.export_chrome_tracing(str(folder / "trace"))) as recorded:
    for _ in range(3):
        with profiler.RecordEvent("prepare"):
            batch = paddle.tanh(x) + 0.1
        step(batch)
        recorded.step()

events = recorded.profiler_result.events
print(len(events), "events;", next((folder / "trace").iterdir()).suffix, "written")

# %%
from matplotlib import pyplot

kinds = {}
for event in events:
    kinds.setdefault(event.kind.name, []).append(event)
begin = min(event.start for event in events)
figure, axes = pyplot.subplots(figsize=(10, 2.6), layout="constrained")
for row, found in enumerate(kinds.values()):
    axes.broken_barh(
        [((e.start - begin) / 1e6, (e.end - e.start) / 1e6) for e in found], (row - 0.4, 0.8), color=f"C{row}"
    )
axes.set_yticks(range(len(kinds)), list(kinds))
axes.set(xlabel="milliseconds", title="three steps")
pyplot.show()

# %% [markdown]
# ## Memory
#
# Every intermediate has a place in one arena. The report has the plan with its largest buffers:

# %%
titles = [section.title for section in report.sections]
memory = next(title for title in titles if "memory" in title)
print("\n".join(report[memory].splitlines()[:14]))

# %% [markdown]
# ## Each pass, in files
#
# `ARGOSY_DUMP=folder` writes the program before and after each pass. `ARGOSY_LOG=compile` prints a line for each
# compilation, with its reason.

# %%
script = folder / "script.py"
script.write_text(
    """
import argosy as paddle

@paddle.jit.to_static(full_graph=True)
def f(x):
    return paddle.nn.functional.softmax(x * 2).sum()

x = paddle.ones([4, 4])
print(float(f(x)), float(f(x[:2])))
"""
)


def run(*command, **variables):
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env={**os.environ, **variables})
    return done.returncode, (done.stdout + done.stderr).strip()


print(run(sys.executable, "script.py", ARGOSY_LOG="compile")[1])

# %%
run(sys.executable, "script.py", ARGOSY_DUMP=str(folder / "dump"), ARGOSY_CACHE_DIR=str(folder / "cache"))
sorted(path.name for path in (folder / "dump").rglob("*") if path.is_file())[:8]

# %% [markdown]
# ## Which optimisation is to blame
#
# `argosy bisect -- COMMAND` runs a command that fails again and again with fewer optimisations, and names the first
# one that makes it fail. Here the script insists on two kernels, so it fails as soon as they were fused into one:

# %%
failing = folder / "failing.py"
failing.write_text(
    script.read_text()
    + """
kernels = int(paddle.explain(f, x, measure=False)["kernels"].split()[0])
assert kernels >= 3, f"only {kernels} kernels"
"""
)
code, output = run(sys.executable, "-m", "argosy.cli", "bisect", "--", sys.executable, "failing.py")
print(output[-600:] or "the command does not fail", f"(exit code {code})")

# %% [markdown]
# ## Where numbers go wrong
#
# `detect_anomaly` names the operation whose derivative is NaN, and `science.first_nan` the first operation of a
# captured call that makes one.

# %%
bad = paddle.to_tensor([0.0, 1.0], stop_gradient=False)
try:
    with paddle.autograd.detect_anomaly():
        (paddle.sqrt(bad) * 0).sum().backward()
except Exception as error:
    print(f"{type(error).__name__}: {error}")

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
attempt(lambda: paddle.explain(3))  # no function

# %%
attempt(lambda: report["colours"])  # a section of another name

# %%
attempt(lambda: paddle.explain(step))  # the arguments of the call are missing
code, output = run(
    sys.executable, "-c", "import argosy as p; p.jit.to_static(lambda x: x + 1)(p.ones([2]))", ARGOSY_VERIFY="yes"
)
print(next(line for line in output.splitlines() if "Error" in line))  # a setting that has no such value
