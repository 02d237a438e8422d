# %% [markdown]
# # Export a model, and serve it without training code
#
# A trained model becomes two files: its program (`.pir`) and its weights (`.safetensors`). The package `argosy-infer`
# runs them. Neither the code of the model nor argosy itself is needed where they are served.

# %%
import json
import tempfile
from pathlib import Path

import argosy as paddle

paddle.seed(0)
folder = Path(tempfile.mkdtemp())

# %% [markdown]
# ## A model to serve
#
# It says which of three numbers is the largest.

# %%
model = paddle.nn.Sequential(paddle.nn.Linear(3, 32), paddle.nn.ReLU(), paddle.nn.Linear(32, 3))
optimizer = paddle.optimizer.Adam(0.01, parameters=model.parameters())


@paddle.jit.to_static(full_graph=True)
def step(x, y):
    loss = paddle.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    return loss


for _ in range(300):
    x = paddle.randn([128, 3])
    loss = step(x, x.argmax(axis=1))
print(f"loss {float(loss):.3f}")

# %% [markdown]
# ## Export
#
# `None` leaves a size open: any batch may come. The name `x` is what whoever serves calls the input.

# %%
model.eval()
paddle.jit.save(model, str(folder / "model"), input_spec=[paddle.static.InputSpec([None, 3], "float32", "x")])
sorted(path.name for path in folder.iterdir())

# %% [markdown]
# ## Running it
#
# The predictor is all that is imported. It checks what it is given, and it is compiled where `argosy-cinn` is
# installed (`pip install 'argosy-infer[fast]'`).

# %%
from argosy_infer import Predictor

predictor = Predictor(str(folder / "model"))
(scores,) = predictor.run(x=[[1.0, 5.0, 2.0], [0.0, -1.0, -2.0]])
scores.argmax(axis=1)

# %% [markdown]
# In a process of its own we can see that no training code is loaded:

# %%
import subprocess
import sys

program = f"""
import sys
from argosy_infer import Predictor
(scores,) = Predictor({str(folder / "model")!r}).run(x=[[1.0, 5.0, 2.0]])
print(scores.argmax(), "argosy" in sys.modules, "argosy_autograd" in sys.modules)
"""
print(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)

# %% [markdown]
# ## A small server
#
# The standard library's server is enough to show it: a request is JSON, and so is the answer. A `Predictor` may be
# called by one thread at a time, so each thread has its own, or a lock stands before one.

# %%
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    """Answers POST requests with the scores."""

    def do_POST(self):
        rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            (scores,) = predictor.run(x=rows)
            status, answer = 200, {"scores": scores.tolist()}
        except ValueError as error:
            status, answer = 400, {"error": str(error)}
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *args):
        """Say nothing."""


server = HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
request = urllib.request.Request(f"http://127.0.0.1:{server.server_port}", json.dumps([[1.0, 5.0, 2.0]]).encode())
answer = json.loads(urllib.request.urlopen(request).read())
server.shutdown()
server.server_close()
[round(score, 2) for score in answer["scores"][0]]

# %% [markdown]
# ## Language models
#
# A causal model exported the same way is turned into its incremental form by a pass, with a cache of keys and values
# that nobody had to write.

# %%
from argosy.models import GPT, GPTConfig
from argosy_infer import Generator, SamplingOptions

gpt = GPT(GPTConfig(vocabulary=64, positions=32, width=32, layers=2, heads=2))
gpt.eval()
paddle.jit.save(gpt, str(folder / "gpt"), input_spec=[paddle.static.InputSpec([None, None], "int64", "ids")])
generator = Generator(str(folder / "gpt"), capacity=64)
generator.generate([1, 2, 3], max_new_tokens=8, options=SamplingOptions(temperature=0.8, seed=1))

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
attempt(lambda: predictor.run(x=[[1.0, 2.0]]))  # two numbers instead of three

# %%
attempt(lambda: predictor.run(y=[[1.0, 2.0, 3.0]]))  # an input of another name

# %%
attempt(lambda: predictor.run(x=[[1.0, float("nan"), "three"]]))  # no numbers

# %%
attempt(lambda: Predictor(str(folder / "modle")))  # a file that is not there

# %%
attempt(lambda: generator.generate([1, 99], max_new_tokens=3))  # a token outside of the vocabulary
