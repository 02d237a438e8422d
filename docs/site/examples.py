"""An example for each public name: written ones, else the first sample by which the operator is tested.

Written examples lie in ``docs/examples/*.txt``, a line each: a name, a colon, and statements with two semicolons
between them; or the name and the colon, then prompts below. A statement that ends with ``# raises`` shows its error.
What examples print is not written there but printed when they are run, so that it cannot be out of date; an example
that prints nothing is an error.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from catalogue import PACKAGES, ROOT, Entry
from observed_calls import CallObserver

FOLDER = ROOT / "docs" / "examples"
QUICK = {"FLAGS_cudnn_deterministic": "1", "ARGOSY_EAGER": "plain"}
"""Settings under which operators are not compiled: an example is run once."""
BEGIN = (
    f"import numpy as np\nimport {', '.join(PACKAGES)}\nimport argosy as paddle\nimport argosy\nfrom argosy import nn\n"
    "import argosy.nn.functional as F\nimport argosy.distributed as dist\n"
    "from argosy.distributed.debug import run_ranks\npaddle.seed(0)\nnp.random.seed(0)\n"
)
LONGEST = 14
_MODEL = (
    "with paddle.LazyGuard():  # no weights are made",
    "\0    model = NAME(num_classes=10)",
    "sum(p.size for p in model.parameters())",
)
_FILES = ("NAME()  # raises",)
PATTERNS = {
    "argosy.vision.models": _MODEL,
    "argosy.vision.datasets": _FILES,
    "argosy.text.datasets": _FILES,
    "argosy.audio.datasets": _FILES,
    "argosy.cuda": _FILES,
    "argosy.sparse": ("x = paddle.sparse.sparse_coo_tensor([[0, 1], [1, 0]], [0.5, 0.25], [2, 2])", "NAME(x).values()"),
}
"""Examples of modules whose names are all called alike, where none is written: models are counted, data sets say which
file they miss, questions about a GPU what they answer without one."""


class ExampleError(Exception):
    """An example that fails or prints nothing."""


@cache
def written() -> dict[str, str]:
    """The written examples by name."""
    found: dict[str, str] = {}
    for page in sorted(FOLDER.glob("*.txt")):
        name = ""
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            if line.startswith((">>> ", "... ", "...")):
                found[name] += line[4:] + "\n" if line.startswith(">>>") else "\0" + line[4:] + "\n"
            elif line.strip() and not line.startswith("#"):
                name, _, code = line.partition(":")
                if name in found:
                    raise ExampleError(f"{page.name}:{number}: {name} has an example already")
                found[name] = "".join(f"{step.strip()}\n" for step in code.split(" ;; ") if step.strip())
    return found


def source_of(entry: Entry) -> str:
    """The lines of an entry's example; empty where there is none. Continuation lines begin with a zero byte."""
    for path in (entry.path, *entry.others):
        for name in (path, path.removeprefix("argosy.")):
            if name in written():
                return written()[name]
    if entry.kind == "absent":
        return f"{_called(entry.path)}()\n"
    pattern = PATTERNS.get(entry.home)
    if pattern is not None:
        return "\n".join(pattern).replace("\0", "@").replace("NAME", _called(entry.path)).replace("@", "\0") + "\n"
    if entry.kind == "constant":
        return f"{_called(entry.path)}\n"
    return _from_samples(entry) if entry.kind == "operator" else ""


def _called(path: str) -> str:
    return "paddle" + path.removeprefix("argosy") if path.startswith("argosy.") else path


def _from_samples(entry: Entry) -> str:
    sampler = getattr(entry.value, "sampler", None)
    if sampler is None:
        return ""
    samples = list(sampler(np.random.default_rng(0)))
    weights = [_weight(sample) for sample in samples]
    good = [sample for weight, sample in sorted(zip(weights, samples, strict=True), key=lambda p: p[0]) if weight > 0]
    if not (good or samples):
        return ""
    sample = (good or samples)[0]
    shown = [_shown(value) for value in sample.args] + [f"{k}={_shown(v)}" for k, v in sample.kwargs.items()]
    lines, arguments = [], []
    names = iter("xyzwvutsrqp")
    for text in shown:
        key, equals, value = text.rpartition("=") if re.match(r"\w+=paddle", text) else ("", "", text)
        if value.startswith("paddle.to_tensor") and len(value) > 24:
            name = next(names, "")
            lines.append(f"{name} = {value}")
            arguments.append(key + equals + name)
        else:
            arguments.append(text)
    return "\n".join([*lines, f"{_called(entry.path)}({', '.join(arguments)})"]) + "\n"


def _weight(sample: Any) -> int:
    arrays = [a for v in (*sample.args, *sample.kwargs.values()) for a in (v if isinstance(v, list) else [v])]
    sizes = [a.size for a in arrays if isinstance(a, np.ndarray)]
    return sum(sizes) if sizes and min(sizes) > 0 and max(sizes) > 1 else 0


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        kind = value.dtype.kind
        data = np.round(value, 2) if kind in "fc" else value
        dtype = {"f": "", "i": "", "b": ""}.get(kind, f", dtype={value.dtype.name!r}")
        if kind == "i" and value.dtype.itemsize != 8:
            dtype = f", dtype={value.dtype.name!r}"
        if kind == "V" or value.dtype.name not in np.sctypeDict:
            return f"paddle.to_tensor({np.round(value.astype('float32'), 2).tolist()}, dtype={value.dtype.name!r})"
        if value.size == 0:
            return f"paddle.zeros({list(value.shape)}, dtype={value.dtype.name!r})"
        return f"paddle.to_tensor({_listed(data)}{dtype})"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    return repr(value)


def _listed(data: np.ndarray) -> str:
    text = repr(data.tolist())
    return re.sub(r"(\d)\.0(?=[,\])])", r"\1.0", text).replace("nan", "float('nan')").replace("inf", "float('inf')")


def run(source: str, where: str, observer: CallObserver | None = None) -> str:
    """The example as a session of Python: prompts, and what is printed. Raises ExampleError where it fails."""
    names: dict[str, Any] = {"__name__": "example", "__call__": observer}
    exec(BEGIN, names)
    session, printed = [], False
    for step in _steps(source):
        session += [(">>> " if i == 0 else "... ") + line for i, line in enumerate(step.rstrip("\n").split("\n"))]
        output = _printed(step, names, where, observer)
        printed |= bool(output)
        lines = output.rstrip("\n").split("\n") if output else []
        session += lines if len(lines) <= LONGEST else [*lines[: LONGEST - 1], "(and so on)"]
    if not printed:
        raise ExampleError(f"the example of {where} prints nothing")
    return "\n".join(line[:200] for line in session)


def _steps(source: str) -> list[str]:
    steps: list[str] = []
    for line in source.splitlines():
        if line.startswith("\0"):
            steps[-1] += line[1:] + "\n"
        else:
            steps.append(line + "\n")
    return steps


def _printed(step: str, names: dict[str, Any], where: str, observer: CallObserver | None) -> str:
    stream = io.StringIO()
    try:
        tree = ast.parse(step)
        if observer is not None:
            observer.rewrite(tree)
        with contextlib.redirect_stdout(stream), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr):
                value = eval(compile(ast.Expression(tree.body[0].value), "<example>", "eval"), names)
                if value is not None:
                    print(repr(value))
            else:
                exec(compile(tree, "<example>", "exec"), names)
    except NotImplementedError as error:
        stream.write(f"NotImplementedError: {error}\n")
    except Exception as error:
        if not step.rstrip().endswith("# raises"):
            raise ExampleError(f"{where} fails at {step.strip()!r}: {type(error).__name__}: {error}") from error
        stream.write(f"{type(error).__name__}: {error}\n")
    return stream.getvalue()


def run_all(part: int, parts: int) -> dict[str, tuple[str, str]]:
    """The sessions of every ``parts``-th entry, by path: ``FAILED ...`` for one that fails, empty for none; and what
    the calls of an operator in it show."""
    os.environ.update(QUICK)
    from catalogue import entries

    found = {}
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for entry in entries()[part::parts]:
            source = source_of(entry)
            observer = CallObserver(entry.value) if entry.kind == "operator" else None
            try:
                text = run(source, entry.path, observer) if source else ""
            except ExampleError as error:
                text = f"FAILED {error}"
            found[entry.path] = text, " ".join(observer.sentences()) if observer is not None else ""
        os.chdir(home)
    return found


def sessions(parts: int = 2) -> dict[str, tuple[str, str]]:
    """All sessions, by processes of their own: settings and seeds of one example are not those of the caller."""
    import json
    import subprocess

    program = (
        "import sys, json, examples; json.dump(examples.run_all(int(sys.argv[1]), int(sys.argv[2])), sys.__stdout__)"
    )
    environment = os.environ | QUICK | {"PYTHONPATH": str(Path(__file__).parent)}
    started = [
        subprocess.Popen([sys.executable, "-c", program, str(i), str(parts)], env=environment, stdout=subprocess.PIPE)
        for i in range(parts)
    ]
    found: dict[str, tuple[str, str]] = {}
    for process in started:
        out, _ = process.communicate()
        if process.returncode:
            raise ExampleError(f"a process that runs examples ended with {process.returncode}")
        found |= json.loads(out)
    return found
