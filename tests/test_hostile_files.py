"""Files that are damaged or made to harm are refused with a ValueError, without much memory, executing nothing.

Each format's files are cut, flipped, stretched and, where a checksum guards them, given the right one again; JSON is
changed as a tree, so that what is wrong lies deep inside.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy_infer.export import load_program
from argosy_pir.serialization import from_bytes, to_bytes
from argosy_tensorcore.safetensors import load_file, save_file

PADDLES = Path(__file__).resolve().parents[1] / "packages/meta/tests/paddle_programs"
TRIES = 40
MUCH = 32 << 20
"""Bytes that reading a file of some kilobytes never needs."""
ODD = (None, -1, 10**18, 2**70, 1.5, "text", "", [], {}, [[]], True, "../../secret", [-1], [10**9] * 3, {"a": 1})


def damaged(data: bytes, random: Random) -> bytes:
    """``data`` with one thing wrong."""
    found, at = bytearray(data), random.randrange(len(data))
    some = random.randrange(1, 9)
    kind = random.randrange(5)
    if kind == 0:
        return bytes(found[:at])
    if kind == 1:
        found[at] ^= 1 << random.randrange(8)
    elif kind == 2:
        found[at:at] = random.randbytes(some)
    elif kind == 3:
        found[at : at + some] = b"\xff" * some
    else:
        del found[at : at + 4 * some]
    return bytes(found)


def places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of ``tree`` with each of its keys."""
    keys = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        yield tree, key
        yield from places(tree[key])


def changed(data: bytes, random: Random) -> bytes:
    """The JSON ``data`` with one node replaced or removed."""
    tree = json.loads(data)
    home, key = random.choice(list(places(tree)))
    if random.randrange(4):
        home[key] = random.choice(ODD)
    else:
        del home[key]
    return json.dumps(tree).encode()


def survives(read: Callable[[], Any]) -> None:
    """``read`` gives something, or refuses, with little memory."""
    tracemalloc.start()
    try:
        with suppress(ValueError, NotImplementedError):
            read()
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < MUCH


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with one file of each format."""
    folder = tmp_path_factory.mktemp("files")
    model = paddle.nn.Sequential(paddle.nn.Embedding(5, 3), paddle.nn.Linear(3, 4), paddle.nn.LayerNorm(4))
    optimizer = paddle.optimizer.Adam(0.1, parameters=model.parameters())
    model(paddle.to_tensor([[0, 3]])).square().sum().backward()
    optimizer.step()
    nest = {"n": [1, (2.5, {"x": paddle.ones([2])})], "s": "text"}
    for name, held in (("m.pdparams", model.state_dict()), ("m.pdopt", optimizer.state_dict()), ("n.pdparams", nest)):
        paddle.save(held, str(folder / name))
    paddle.save(model.state_dict(), str(folder / "m.safetensors"))
    paddle.save(nest, str(folder / "n.safetensors"))
    model.eval()
    paddle.jit.save(model, str(folder / "program"), input_spec=[paddle.static.InputSpec([None, 2], "int64")])
    dist.save_state_dict({"w": paddle.ones([4, 3]), "b": {"c": paddle.zeros([2]), "k": 3}}, str(folder / "parts"))
    return folder


@pytest.mark.parametrize("name", ["m.pdparams", "m.pdopt", "n.pdparams", "m.safetensors", "n.safetensors"])
def test_saved_states(files, tmp_path, name):
    """paddle.load of damaged state files."""
    data, random = (files / name).read_bytes(), Random(name)
    for _ in range(TRIES):
        (tmp_path / name).write_bytes(damaged(data, random))
        survives(lambda: paddle.load(str(tmp_path / name)))


def rewritten(folder: Path, data: bytes, states: dict[str, Any]) -> str:
    """The path of a program file of ``data`` with weights that belong to it."""
    (folder / "p.pir").write_bytes(data)
    save_file(states, folder / "p.safetensors", {"argosy.program": hashlib.sha256(data).hexdigest()})
    return str(folder / "p")


def test_programs(files, tmp_path):
    """Programs behind right checksums: what their sections hold is checked all the same."""
    data, random = (files / "program.pir").read_bytes(), Random("programs")
    states = load_file(files / "program.safetensors")
    for _ in range(2 * TRIES):
        body = damaged(data[:-4], random)
        path = rewritten(tmp_path, body + crc32(body).to_bytes(4, "little"), states)
        survives(lambda path=path: load_program(path))


@pytest.mark.parametrize("stem", ["mlp", "lstm"])
def test_paddles_programs(tmp_path, stem):
    """Damaged .json and .pdiparams of the real wheel."""
    random = Random(stem)
    program, weights = ((PADDLES / f"{stem}{end}").read_bytes() for end in (".json", ".pdiparams"))
    for turn in range(TRIES):
        wrong = turn % 3
        (tmp_path / "p.json").write_bytes((program, changed(program, random), damaged(program, random))[wrong])
        (tmp_path / "p.pdiparams").write_bytes(weights if wrong else damaged(weights, random))
        survives(lambda: paddle.jit.load(str(tmp_path / "p")))


def test_parts_of_checkpoints(files, tmp_path):
    """Damaged metadata and damaged parts of a sharded checkpoint."""
    folder, random = tmp_path / "parts", Random("parts")
    shutil.copytree(files / "parts", folder)
    for file in sorted(folder.iterdir()):
        data = file.read_bytes()
        for turn in range(TRIES):
            change = changed if file.suffix == ".json" and turn % 3 else damaged
            file.write_bytes(change(data, random))
            wanted = {"w": paddle.ones([4, 3]), "b": {"c": paddle.zeros([2]), "k": 3}}
            survives(lambda wanted=wanted: dist.load_state_dict(wanted, str(folder)))
            survives(lambda: dist.load_merged_state_dict(str(folder)))
        file.write_bytes(data)


def test_programs_saved_before_an_operator_grew(files, tmp_path):
    """Attributes and optional operands that a file lacks have their defaults; those that nobody knows are refused."""
    program = from_bytes((files / "program.pir").read_bytes())
    states = load_file(files / "program.safetensors")
    x = paddle.to_tensor([[0, 3], [4, 1]])
    expected = paddle.jit.load(str(files / "program"))(x).numpy()
    lookup = next(op for op in program.walk() if op.name == "phi.embedding")
    norm = next(op for op in program.walk() if op.name == "phi.layer_norm")
    assert {"max_norm", "sparse"} & lookup.attributes.keys()
    for name in lookup.attributes.keys() & {"max_norm", "norm_type", "scale_grad_by_freq", "sparse"}:
        del lookup.attributes[name]
    norm.attributes.pop("segments")
    found = paddle.jit.load(rewritten(tmp_path, to_bytes(program), states))(x).numpy()
    assert (found == expected).all()
    lookup.attributes["colour"] = 3
    with pytest.raises(ValueError, match=r"p\.pir.*embedding has no attributes \['colour'\]"):
        paddle.jit.load(rewritten(tmp_path, to_bytes(program), states))
