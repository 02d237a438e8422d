"""``argosy explain script.py:function``: what a function of a script becomes, without changing the script."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import runpy
import sys
from collections.abc import Sequence
from typing import Any

__all__ = ["main"]

_INPUT = re.compile(r"([a-z]+\d*)\[([\d, ]*)\]$")


def main(arguments: Sequence[str]) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="argosy explain", description="Show what a function is compiled to.")
    parser.add_argument("function", help="script.py:name or package.module:name; name may be model.forward")
    parser.add_argument("--input", action="append", default=[], metavar="DTYPE[SIZES]",
                        help="a tensor it is called with, as in float32[8,16]; once for each argument")  # fmt: skip
    parser.add_argument("--save", metavar="PAGE", help="write everything to a file, HTML where it ends in .html")
    parser.add_argument("--no-measure", action="store_true", help="do not run it")
    given = parser.parse_args(arguments)
    import argosy

    try:
        function = _find(given.function)
        inputs = [_tensor(text) for text in given.input]
    except (ValueError, AttributeError, ImportError, FileNotFoundError) as error:
        sys.stderr.write(f"argosy explain: {error}\n")
        return 2
    report = argosy.explain(function, *inputs, measure=not given.no_measure)
    if given.save:
        report.save(given.save)
    sys.stdout.write(f"{report!r}\n")
    return 0


def _find(text: str) -> Any:
    """The function. Raises ValueError, AttributeError, ImportError or FileNotFoundError saying what is not there."""
    where, colon, name = text.rpartition(":")
    if not colon:
        raise ValueError(f"{text!r} names no function; expected script.py:function or package.module:function")
    first, *rest = name.split(".")
    if where.endswith(".py"):
        sys.path.insert(0, os.path.dirname(os.path.abspath(where)))
        names = runpy.run_path(where, run_name="argosy_explain")
    else:
        sys.path.insert(0, os.getcwd())
        names = vars(importlib.import_module(where))
    if first not in names:
        functions = sorted(n for n, v in names.items() if callable(v) and not n.startswith("_"))
        raise AttributeError(f"{where} has no {first!r}; it has {', '.join(functions) or 'no functions'}")
    found = names[first]
    for part in rest:
        found = getattr(found, part)
    return found


def _tensor(text: str) -> Any:
    """A tensor of random numbers (of zeros and ones, where it has whole numbers). Raises ValueError."""
    import argosy

    found = _INPUT.match(text)
    if found is None:
        raise ValueError(f"--input {text}: expected a dtype and sizes, as in float32[8,16] or int64[4,128]")
    dtype, shape = found[1], [int(n) for n in found[2].split(",") if n.strip()]
    if dtype.startswith(("int", "uint", "bool")):
        return argosy.randint(0, 2, shape).astype(dtype)
    return argosy.randn(shape).astype(dtype)
