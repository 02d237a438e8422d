"""ONNX files: read and checked before anything is made of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from argosy_infer.errors import ProgramFileError
from argosy_tensorcore.dtype import as_dtype

__all__ = ["Document", "dtype_name", "read_array", "read_document", "subgraphs"]

Array = np.ndarray[Any, Any]
_DTYPES = {
    "FLOAT": "float32", "DOUBLE": "float64", "BFLOAT16": "bfloat16", "FLOAT8E4M3FN": "float8_e4m3fn",
    "FLOAT8E5M2": "float8_e5m2",
} | {name.upper(): name for name in (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "complex64",
    "complex128",
)}  # fmt: skip


class Document:
    """A model whose graph is in order. ``folder`` is where its external data may lie; None: nowhere."""

    def __init__(self, model: Any, folder: str | None, name: str) -> None:
        self.model, self.folder, self.name = model, folder, name
        self.functions = {(f.domain, f.name): f for f in model.functions}
        self.versions = {each.domain or "": each.version for each in model.opset_import}


def read_document(source: str | os.PathLike[str] | bytes | Any) -> Document:
    """The model of a file, of its bytes, or of an ``onnx.ModelProto``.

    Raises :class:`ProgramFileError` for what is no model, is damaged, or whose nodes are not in order (a circle among
    them).
    """
    if isinstance(source, onnx.ModelProto):
        name, folder, model = source.graph.name or "a model", None, source
    elif isinstance(source, bytes):
        name, folder, model = "a model", None, _parse(source, "a model")
    else:
        name = os.fspath(source)
        folder, model = os.path.dirname(os.path.abspath(name)), _parse(_read(name), name)
    document = Document(model, folder, name)
    if not model.HasField("graph") or not model.opset_import:
        raise ProgramFileError(f"{name} is not an ONNX model: it has no graph or says no operator set")
    _check_order(model.graph, set(), name)
    return document


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise ProgramFileError(f"cannot read {path}: {error.strerror or error}") from error


def _parse(data: bytes, name: str) -> Any:
    try:
        return onnx.load_model_from_string(data)
    except DecodeError as error:
        raise ProgramFileError(f"{name} is damaged or no ONNX model: {error}") from error


def _check_order(graph: Any, outer: set[str], name: str) -> None:
    """Every value is made before it is read, as the format demands: there is no circle then."""
    known = outer | {x.name for x in graph.input} | {x.name for x in graph.initializer}
    known |= {x.values.name for x in graph.sparse_initializer}
    for node in graph.node:
        missing = [x for x in node.input if x and x not in known]
        if missing:
            raise ProgramFileError(
                f"{name}: node {node.name or node.op_type!r} reads {missing[0]!r}, which no node before it makes: "
                "nodes go around in a circle, or are not in order"
            )
        for inner in subgraphs(node):
            _check_order(inner, known, name)
        known |= set(node.output)
    for output in graph.output:
        if output.name not in known:
            raise ProgramFileError(f"{name}: nothing makes the output {output.name!r}")


def subgraphs(node: Any) -> Iterator[Any]:
    """The graphs that a node has as attributes."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g


def dtype_name(element_type: int, what: str) -> str:
    """The dtype of an ONNX element type. Raises NotImplementedError naming it and ``what``."""
    name = onnx.TensorProto.DataType.Name(element_type)
    if name not in _DTYPES:
        raise NotImplementedError(f"{what} has elements of type {name}")
    return _DTYPES[name]


def read_array(tensor: Any, folder: str | None) -> Array:
    """The elements of a ``TensorProto``; external data is mapped from within ``folder``.

    Raises :class:`ProgramFileError` for sizes that are negative or not those of the data, and for data elsewhere.
    """
    what = f"the tensor {tensor.name!r}"
    shape, dtype = tuple(tensor.dims), as_dtype(dtype_name(tensor.data_type, what)).numpy
    if any(n < 0 for n in shape):
        raise ProgramFileError(f"{what} has the sizes {list(shape)}, one of them negative")
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return _external_array(tensor, shape, dtype, folder)
    if tensor.HasField("raw_data"):
        _check_bytes(what, shape, dtype, len(tensor.raw_data))
        return np.frombuffer(tensor.raw_data, dtype).reshape(shape)
    try:
        return np.asarray(numpy_helper.to_array(tensor), dtype)
    except ValueError as error:
        raise ProgramFileError(f"{what} is damaged: {error}") from error


def _check_bytes(what: str, shape: Iterable[int], dtype: Any, found: int) -> None:
    wanted = dtype.itemsize
    for n in shape:
        wanted *= n
    if wanted != found:
        raise ProgramFileError(f"{what} {list(shape)} takes {wanted} bytes, and {found} are there")


def _external_array(tensor: Any, shape: tuple[int, ...], dtype: Any, folder: str | None) -> Array:
    what = f"the external data of {tensor.name!r}"
    entries = {e.key: e.value for e in tensor.external_data}
    if folder is None:
        raise ProgramFileError(f"{what}: a model that is given as bytes has no folder for {entries.get('location')!r}")
    base = os.path.realpath(folder)
    path = os.path.realpath(os.path.join(base, entries.get("location", "")))
    if os.path.commonpath([base, path]) != base or not os.path.isfile(path):
        raise ProgramFileError(
            f"{what} is to be {entries.get('location')!r}, which is no file within the model's folder"
        )
    try:
        offset = int(entries.get("offset", 0))
        length = int(entries.get("length", os.path.getsize(path) - offset))
    except ValueError as error:
        raise ProgramFileError(f"{what}: {error}") from None
    _check_bytes(what, shape, dtype, length)
    if offset < 0 or offset + length > os.path.getsize(path):
        raise ProgramFileError(f"{what}: bytes {offset} to {offset + length} are not all in {path}")
    mapped = np.memmap(path, np.uint8, "c", offset, (length,)) if length else np.empty(0, np.uint8)
    found: Array = np.asarray(mapped).view(dtype)
    return found.reshape(shape)
