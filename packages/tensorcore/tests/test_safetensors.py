"""Checkpoints: what is written is read, damage is named, and a failed write changes nothing."""

import json
import resource

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argosy_tensorcore import Tensor, as_dtype
from argosy_tensorcore.dtype import ALL_DTYPES
from argosy_tensorcore.safetensors import NAMES, CheckpointError, SafetensorsFile, load_file, save_file


def sample() -> dict[str, np.ndarray]:
    """Every dtype in 0-D, empty, plain and non-contiguous shapes."""
    tensors = {}
    for d in ALL_DTYPES:
        plain = (np.arange(6).reshape(2, 3) % 2).astype(d.numpy)
        for shape, array in {
            "scalar": plain[0, 1],
            "empty": plain[:, :0],
            "plain": plain,
            "strided": plain.T,
        }.items():
            tensors[f"{d.name}.{shape}"] = np.asarray(array)
    return tensors


def write(path, header: object, data: bytes = b"", length: int | None = None) -> None:
    """A file of any header, true or not."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)


def entry(dtype: str = "F32", shape: object = (2,), offsets: object = (0, 8)) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


@pytest.mark.parametrize("read", [load_file, SafetensorsFile], ids=["load", "map"])
def test_every_dtype_and_shape_survives(tmp_path, read):
    """Bits, dtypes and shapes come back in aligned arrays; loaded ones are writable, mapped ones not."""
    tensors = sample()
    save_file(tensors, tmp_path / "a.safetensors", {"format": "np"})
    back = read(tmp_path / "a.safetensors")
    assert set(back) == set(tensors)
    for name, array in tensors.items():
        got = back[name]
        assert (got.dtype, got.shape, got.tobytes()) == (array.dtype, array.shape, array.tobytes()), name
        assert got.flags.aligned
        assert got.flags.writeable == (read is load_file) or got.size == 0


def test_a_mapped_file_reads_lazily_and_outlives_closing(tmp_path):
    """Metadata and shapes are there without data; arrays stay valid after close; a closed file says so."""
    path = tmp_path / "a.safetensors"
    save_file({"w": np.arange(4.0), "b": np.zeros(2, np.float32)}, path, {"step": "7"})
    with SafetensorsFile(path) as file:
        assert (file.metadata, len(file), "w" in file, list(file.keys())) == (
            {"step": "7"},
            2,
            True,
            ["w", "b"],
        )
        assert file.infos["b"].shape == (2,)
        w = file["w"]
    assert w.tolist() == [0.0, 1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="closed"):
        file["w"]


def test_some_tensors_of_a_file(tmp_path):
    """load_file takes the names it is given; an unknown one is named with those there are."""
    path = tmp_path / "a.safetensors"
    save_file({"w": np.arange(4.0), "b": np.zeros(2)}, path)
    assert list(load_file(path, ["b"])) == ["b"]
    with pytest.raises(CheckpointError, match=r"no tensor 'x'.*'b'"):
        load_file(path, ["x"])


def test_tensors_and_no_tensors_can_be_saved(tmp_path):
    """Tensors are saved as their data, bfloat16 as such; an empty file is a file."""
    path = tmp_path / "a.safetensors"
    save_file({"t": Tensor([1.5], "bfloat16")}, path)
    assert load_file(path)["t"].dtype.name == "bfloat16"
    save_file({}, path)
    assert load_file(path) == {}
    assert dict(SafetensorsFile(path)) == {}


@pytest.mark.parametrize(
    ("header", "data", "message"),
    [
        (b"{", b"", "not a safetensors|not JSON"),
        (b"\xff\xfe{}", b"", "not JSON"),
        (b"[1, 2]", b"", "object"),
        (b"[" * 100_000, b"", "not JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", b"", "number|exactly"),
        (
            b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "a": {}}',
            b"\0" * 8,
            "'a' appears twice",
        ),
        (
            b'{"a": {"dtype": "F32", "dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}',
            b"\0" * 8,
            "twice",
        ),
        ({"a": 1}, b"", "'a' must have exactly"),
        ({"a": {**entry(), "extra": 1}}, b"\0" * 8, "'a' must have exactly"),
        ({"a": entry(dtype="F128")}, b"\0" * 8, "unknown dtype 'F128'"),
        ({"a": entry(dtype=["F32"])}, b"\0" * 8, "unknown dtype"),
        ({"a": entry(shape=[-2])}, b"\0" * 8, "'a' has shape"),
        ({"a": entry(shape=[2.0])}, b"\0" * 8, "'a' has shape"),
        ({"a": entry(shape=[True, 2])}, b"\0" * 8, "'a' has shape"),
        ({"a": entry(shape=2)}, b"\0" * 8, "'a' has shape"),
        ({"a": entry(shape=[1] * 40)}, b"\0" * 8, "'a' has shape"),
        ({"a": entry(shape=[2**62, 2**62, 0], offsets=[0, 0])}, b"", "beyond"),
        ({"a": entry(offsets=[8, 0])}, b"\0" * 8, "spans"),
        ({"a": entry(offsets=[0])}, b"\0" * 8, "data_offsets"),
        ({"a": entry(offsets=[-8, 0])}, b"\0" * 8, "data_offsets"),
        ({"a": entry(shape=[3])}, b"\0" * 8, "needs 12"),
        ({"a": entry(shape=[2**60], offsets=[0, 2**62])}, b"\0" * 8, "cut short.*'a'"),
        ({"a": entry()}, b"\0" * 7, "cut short.*'a'"),
        ({"a": entry()}, b"\0" * 9, "1 bytes after"),
        ({"a": entry(), "b": entry()}, b"\0" * 8, "'b' overlaps"),
        ({"a": entry(), "b": entry(offsets=[12, 20])}, b"\0" * 20, "'b' leaves a gap"),
        ({"__metadata__": {"a": 1}}, b"", "__metadata__"),
        ({"a": entry("BOOL", [2], [0, 2])}, b"\1\2", "'a' is BOOL"),
    ],
)
def test_damage_is_named(tmp_path, header, data, message):
    """Each kind of damage raises CheckpointError with the file's name, before anything large is allocated."""
    path = tmp_path / "damaged.safetensors"
    write(path, header, data)
    with pytest.raises(CheckpointError, match=message) as caught:
        load_file(path)
    assert "damaged.safetensors" in str(caught.value)
    with pytest.raises(CheckpointError, match=message):
        _all(path)


def _all(path) -> dict[str, np.ndarray]:
    file = SafetensorsFile(path)
    return {name: file[name] for name in file}


@pytest.mark.parametrize("length", [0, 1, 2**40, 2**64 - 1])
def test_a_header_length_beyond_the_file_is_refused(tmp_path, length):
    """The length is believed only as far as the file reaches."""
    path = tmp_path / "a.safetensors"
    write(path, {}, length=length)
    with pytest.raises(CheckpointError, match="not a safetensors file"):
        load_file(path)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_no_damage_escapes_as_another_error(tmp_path, data):
    """A cut or altered file loads (when only data was hit) or raises CheckpointError, nothing else."""
    path = tmp_path / "a.safetensors"
    save_file({"w": np.arange(3.0), "flag": np.ones(2, bool)}, path, {"k": "v"})
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(raw[: data.draw(st.integers(0, len(raw)))]) if data.draw(st.booleans()) else bytes(raw))
    try:
        load_file(path)
    except CheckpointError:
        pass


def test_unaligned_files_of_others_can_be_read(tmp_path):
    """A header that leaves the data unaligned is legal; arrays are aligned all the same."""
    path = tmp_path / "a.safetensors"
    text = json.dumps({"w": entry("F64", [1], [0, 8])})
    text += " " * (3 - len(text) % 8 + 8)
    write(path, text.encode(), np.array([2.5]).tobytes())
    for array in (load_file(path)["w"], SafetensorsFile(path)["w"]):
        assert array.tolist() == [2.5]
        assert array.flags.aligned


def test_a_full_disk_leaves_the_old_file(tmp_path):
    """When writing fails midway the old file stays whole and no temporary file is left."""
    path = tmp_path / "a.safetensors"
    save_file({"w": np.arange(4.0)}, path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"large|space"):
            save_file({"w": np.zeros(1_000_000)}, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert load_file(path)["w"].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert [p.name for p in tmp_path.iterdir()] == ["a.safetensors"]


def test_replacing_a_mapped_file_is_safe(tmp_path):
    """Readers of the old file keep its data when a new one takes its place."""
    path = tmp_path / "a.safetensors"
    save_file({"w": np.arange(4.0)}, path)
    old = SafetensorsFile(path)["w"]
    save_file({"w": np.zeros(4)}, path)
    assert old.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert load_file(path)["w"].tolist() == [0.0] * 4


@pytest.mark.parametrize(
    ("tensors", "metadata", "message"),
    [
        ({"__metadata__": np.zeros(1)}, None, "__metadata__"),
        ({1: np.zeros(1)}, None, "name"),
        ({"a": np.array(["x"])}, None, "'a'"),
        ({"a": np.zeros(1)}, {"k": 1}, "metadata"),
    ],
)
def test_what_the_format_cannot_hold_is_refused(tmp_path, tensors, metadata, message):
    """Names, metadata and dtypes are checked before a file is touched."""
    with pytest.raises(TypeError, match=message):
        save_file(tensors, tmp_path / "a.safetensors", metadata)
    assert list(tmp_path.iterdir()) == []


def test_files_are_those_of_the_reference_library(tmp_path):
    """The format's own library reads our files (all but complex128), and we read its; where installed."""
    reference = pytest.importorskip("safetensors")
    tensors = {name: array for name, array in sample().items() if array.dtype != np.complex128}
    save_file(tensors, tmp_path / "ours.safetensors")
    theirs = dict(reference.deserialize((tmp_path / "ours.safetensors").read_bytes()))
    assert theirs.keys() == tensors.keys()
    for name, array in tensors.items():
        assert (bytes(theirs[name]["data"]), theirs[name]["shape"]) == (array.tobytes(), list(array.shape)), name
        assert theirs[name]["dtype"] == NAMES[as_dtype(array.dtype)]
    plain = {name: np.ascontiguousarray(array) for name, array in tensors.items() if array.dtype.name in PLAIN}
    pytest.importorskip("safetensors.numpy").save_file(plain, tmp_path / "theirs.safetensors")
    back = load_file(tmp_path / "theirs.safetensors")
    assert all(back[name].tobytes() == array.tobytes() for name, array in plain.items())


PLAIN = {"bool", "int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64"}
