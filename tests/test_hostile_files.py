"""Files that are damaged or made to harm are refused with a ValueError, without much memory, executing nothing.

Each format's files are cut, flipped, stretched and, where a checksum guards them, given the right one again; JSON is
changed as a tree, so that what is wrong lies deep inside.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import pickle
import shutil
import tarfile
import tracemalloc
import wave
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy_infer.export import load_program
from argosy_pir.program import Program, from_bytes
from argosy_pir.serialization import to_bytes
from argosy_pir.types import TensorType
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


def packed(members: dict[str, bytes], mode: str) -> bytes:
    """A tar file."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return made.getvalue()


def table_of_films() -> bytes:
    """A zip file as Movielens has it."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as package:
        package.writestr("ml-1m/movies.dat", "1::Toy (1995)::A|B\n2::Sea (1996)::A\n")
        package.writestr("ml-1m/users.dat", "1::F::1::10::48067\n")
        package.writestr("ml-1m/ratings.dat", "1::1::5::9\n1::2::3::9\n")
    return made.getvalue()


def sound() -> bytes:
    """A WAV file."""
    made = io.BytesIO()
    with wave.open(made, "wb") as file:
        file.setparams((2, 2, 8000, 0, "NONE", ""))
        file.writeframes(bytes(400))
    return made.getvalue()


def trace() -> bytes:
    """What a profiler writes."""
    lane = {"pid": 1, "tid": 0}
    named = {"ph": "M", "name": "thread_name", "cat": "lane", "args": {"name": "main 0"}, **lane}
    slice_ = {"ph": "X", "name": "add", "cat": "Operator", "ts": 1.5, "dur": 2.5, "args": {"thread": 1}, **lane}
    return json.dumps({"traceEvents": [named, slice_]}).encode()


NUMBERS = bytes((0, 0, 8, 1)) + (4).to_bytes(4, "big") + bytes(4)
PICTURES = bytes((0, 0, 8, 3)) + (4).to_bytes(4, "big") + (5).to_bytes(4, "big") * 2 + bytes(100)
BATCH = pickle.dumps({b"data": np.zeros((2, 3072), np.uint8), b"labels": [1, 2]}, 2)
REVIEWS = {f"aclImdb/{part}/{kind}/0.txt": b"good film " * 200 for part in ("train", "test") for kind in ("pos", "neg")}


def digits(path: Path) -> Any:
    path.with_name("labels").write_bytes(NUMBERS)
    return paddle.vision.datasets.MNIST(str(path), str(path.with_name("labels")))


DATA: dict[str, tuple[bytes, Callable[[Path], Any]]] = {
    "digits": (PICTURES, digits),
    "digits.gz": (gzip.compress(PICTURES), digits),
    "cifar.tar": (packed({"c/data_batch_1": BATCH}, "w"), lambda path: paddle.vision.datasets.Cifar10(str(path))),
    "cifar.tgz": (packed({"c/data_batch_1": BATCH}, "w:gz"), lambda path: paddle.vision.datasets.Cifar10(str(path))),
    "reviews": (packed(REVIEWS, "w"), lambda path: paddle.text.Imdb(str(path), cutoff=1)),
    "films.zip": (table_of_films(), lambda path: paddle.text.Movielens(str(path))),
    "sound.wav": (sound(), lambda path: paddle.audio.load(str(path))),
    "trace.json": (trace(), lambda path: paddle.profiler.load_profiler_result(str(path))),
}


@pytest.mark.parametrize("name", DATA)
def test_data(tmp_path, name):
    """Damaged archives, pictures, sounds and traces: what is wrong is told with the file's name."""
    data, read = DATA[name]
    random, path = Random(name), tmp_path / name
    path.write_bytes(data)
    read(path)
    for _ in range(TRIES):
        path.write_bytes(damaged(data, random))
        survives(lambda: read(path))


@pytest.mark.parametrize("packed", [False, True])
def test_pictures_that_claim_more_than_there_is(tmp_path, packed):
    head = bytes((0, 0, 8, 3)) + (60_000).to_bytes(4, "big") + (2_000).to_bytes(4, "big") * 2
    (tmp_path / "digits").write_bytes(gzip.compress(head + bytes(1 << 20)) if packed else head)
    with pytest.raises(ValueError, match=r"digits claims \[60000, 2000, 2000\] bytes"):
        digits(tmp_path / "digits")


def test_a_program_whose_parameters_are_larger_than_memory():
    program = Program("huge")
    program.set_outputs([program.add_state("w", TensorType((10**18,), "float32")).argument])
    with pytest.raises(ValueError, match=r"parameter w is .*float32>, more than memory"):
        paddle.static.deserialize_program(to_bytes(program))


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
