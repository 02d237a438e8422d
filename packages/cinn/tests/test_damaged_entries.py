"""Entries of the object cache that are whole by their checksum but not what the compiler writes: made again."""

import json
import os

import numpy as np
import pytest

from argosy_cinn import CinnCompiler
from argosy_cinn.runtime import ObjectCache
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir import Builder, Program, TensorType
from argosy_tensorcore.storage import StridedArray

X = np.linspace(-1, 1, 64, dtype=np.float32)
TABLE = np.arange(64, dtype=np.float32)[::-1].copy()


def _program():
    program = Program("table")
    x = program.add_input(TensorType((64,), "float32"))
    with emit_at(Builder.at_end(program.block)) as b:
        program.set_outputs([prim.add(prim.tanh(x), b.constant(TensorType((64,), "float32"), TABLE.tobytes()))])
    return program


def _run(cache):
    made = CinnCompiler().compile(_program(), device("cpu"), options={"cache": cache})
    np.testing.assert_allclose(made.run([StridedArray.from_array(X)])[0].array(), np.tanh(X) + TABLE, rtol=1e-5)
    return made.report()


def _fields(change):
    def damage(content):
        size = int.from_bytes(content[:8], "little")
        fields = json.loads(content[8 : 8 + size])
        changed = change(fields)
        text = json.dumps(fields if changed is None else changed).encode()
        return len(text).to_bytes(8, "little") + text + content[8 + size :]

    return damage


DAMAGES = {
    "empty": lambda content: b"",
    "short": lambda content: content[:5],
    "length": lambda content: b"\xff" * 8 + content[8:],
    "no code": lambda content: content[: 8 + int.from_bytes(content[:8], "little")],
    "half the code": lambda content: content[: -len(content) // 3],
    "list": _fields(lambda fields: []),
    "number": _fields(lambda fields: 3),
    "missing field": _fields(lambda fields: fields.pop("arena_bytes") and None),
    "unknown field": _fields(lambda fields: fields.update(more=1)),
    "text for a number": _fields(lambda fields: fields.update(arena_bytes="much")),
    "negative": _fields(lambda fields: fields.update(arena_bytes=-5)),
    "no segments": _fields(lambda fields: fields.update(segments=0)),
    "many segments": _fields(lambda fields: fields.update(segments=7)),
    "calls": _fields(lambda fields: fields.update(calls=[[1]])),
    "constant": _fields(lambda fields: fields["constants"][0].__setitem__(2, "%%%")),
    "shape of a constant": _fields(lambda fields: fields["constants"][0].__setitem__(1, [3, 7])),
    "dtype of a constant": _fields(lambda fields: fields["constants"][0].__setitem__(0, "float31")),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_an_entry_of_no_use_is_made_again(damage, tmp_path):
    """The program runs compiled, without a warning, and the next process finds a good entry."""
    cache = ObjectCache(tmp_path / "objects")
    assert not _run(cache)["cache_hit"]
    for key in cache.names():
        content = cache.get(key)
        if b"arena_bytes" in content:
            cache.put(key, damage(content))
    assert "fallback" not in _run(cache)
    assert _run(cache)["cache_hit"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX pipes")
def test_a_pipe_in_the_folder_is_no_entry(tmp_path):
    """Opening one waits for whoever writes to it."""
    cache = ObjectCache(tmp_path / "objects")
    _run(cache)
    for path in cache.folder.glob("*.obj"):
        path.unlink()
        os.mkfifo(path)
    assert "fallback" not in _run(cache)
