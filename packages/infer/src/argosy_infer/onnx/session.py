"""Models run on arrays: a program for each set of shapes, and of values that decide shapes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from argosy_hwadapt import Device
from argosy_infer.errors import InputError
from argosy_infer.export import LoadedProgram
from argosy_infer.onnx.capture import UnknownValue, capture_document
from argosy_infer.onnx.document import Document, read_document, subgraphs
from argosy_infer.onnx.registry import find_operator
from argosy_infer.predictor import Predictor
from argosy_pir.passes import PassManager
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.place import Place

__all__ = ["Session", "load"]

Array = np.ndarray[Any, Any]
_MOST = 64  # elements of an input whose values may decide shapes
_PIPELINE = "cse,dce"


def load(
    source: str | os.PathLike[str] | bytes | Any,
    values: Mapping[str, Any] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> LoadedProgram:
    """The program of an ONNX model: a path, the file's bytes, or an ``onnx.ModelProto``.

    values: of graph inputs that the program is not to have: a program has to know sizes, axes and the like. shapes:
    of graph inputs that leave some open. Open sizes are symbols.

    Raises :class:`ProgramFileError` for damaged models and for nodes whose inputs do not fit, NotImplementedError
    naming a node of which something is not implemented, :class:`UnknownValue` for an input that has to be in values.
    """
    return load_document(read_document(source), values or {}, shapes or {})


def load_document(document: Document, values: Mapping[str, Any], shapes: Mapping[str, Sequence[int]]) -> LoadedProgram:
    """As :func:`load`, of a model that is read."""
    names = {x.name for x in document.model.graph.input}
    if unknown := sorted((values.keys() | shapes.keys()) - names):
        raise InputError(f"{document.name} has no input {unknown[0]!r}; its inputs are {sorted(names)}")
    captured = capture_document(document, {name: np.array(value) for name, value in values.items()}, shapes)
    for value, output in zip(captured.program.outputs, document.model.graph.output, strict=True):
        if value.name_hint is None:
            value.name_hint = output.name
    PassManager(_PIPELINE).run(captured.program)
    kept = zip(captured.program.states, captured.states, strict=True)
    return LoadedProgram(captured.program, {state.name: to_numpy(tensor) for state, tensor in kept})


class Session:
    """Runs a model on arrays, with a program for each set of their shapes.

    Inputs of few numbers along at most one axis whose values a program has to know (sizes, axes) are bound to these, so
    that other values make another program; ``bound`` has their names.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | bytes | Any,
        compiler: str | None = None,
        device: str | Place | Device | None = None,
    ) -> None:
        self.document = read_document(source)
        graph = self.document.model.graph
        weights = {x.name for x in graph.initializer}
        self.input_names = [x.name for x in graph.input if x.name not in weights]
        self.output_names = [x.name for x in graph.output]
        self.bound: frozenset[str] = frozenset()
        self._compiler, self._device = compiler, device
        self._predictors: dict[Any, Predictor] = {}

    def run(self, *arrays: Any, **named: Any) -> list[Array]:
        """The outputs for inputs in order or by name. Raises as :func:`load`, and InputError as a predictor does."""
        given = dict(zip(self.input_names, arrays, strict=False)) | named
        if missing := [name for name in self.input_names if name not in given]:
            raise InputError(f"inputs {missing} are missing; the model takes {self.input_names}")
        found = {name: np.asarray(value) for name, value in given.items()}
        if wrong := [name for name, array in found.items() if array.dtype == object]:
            raise InputError(f"input {wrong[0]!r} is a {type(given[wrong[0]]).__name__}, no array")
        predictor = self._predictor(found)
        return predictor.run(*(found[name] for name in self.input_names if name not in self.bound))

    def missing(self) -> list[str]:
        """What the model has of operators that are not implemented here: ``"StringSplit-20"``."""
        document, found = self.document, []
        for node in _nodes(document.model.graph):
            version = document.versions.get(node.domain, 1)
            known = (
                find_operator(node.domain, node.op_type, version) or (node.domain, node.op_type) in document.functions
            )
            if not known:
                found.append(f"{node.op_type}-{version}")
        return found

    def _predictor(self, given: Mapping[str, Array]) -> Predictor:
        while True:
            key = tuple(_key(given[name], name in self.bound) for name in self.input_names)
            if key in self._predictors:
                return self._predictors[key]
            values = {name: given[name] for name in self.bound}
            shapes = {name: array.shape for name, array in given.items() if name not in self.bound}
            try:
                loaded = load_document(self.document, values, shapes)
            except UnknownValue as error:
                more = {name for name in self._sources(error.value) if _may_decide(given[name])} - self.bound
                if not more:
                    raise
                self.bound |= more
            else:
                self._predictors[key] = Predictor(loaded, self._compiler, self._device)
                return self._predictors[key]

    def _sources(self, value: str) -> set[str]:
        """The inputs that a value of the graph is made of."""
        makers = {name: node for node in _nodes(self.document.model.graph) for name in node.output}
        found, left = set[str](), [value]
        seen = set[str]()
        while left:
            name = left.pop()
            if name in self.input_names:
                found.add(name)
            elif name in makers and name not in seen:
                seen.add(name)
                left += _reads(makers[name])
        return found


def _nodes(graph: Any) -> Iterator[Any]:
    """The nodes of a graph and of the graphs within."""
    for node in graph.node:
        yield node
        for inner in subgraphs(node):
            yield from _nodes(inner)


def _reads(node: Any) -> Iterable[str]:
    """What a node reads, and what its subgraphs read around them."""
    inner = (name for graph in subgraphs(node) for each in graph.node for name in _reads(each))
    return [*(name for name in node.input if name), *inner, *(x.name for g in subgraphs(node) for x in g.output)]


def _may_decide(array: Array) -> bool:
    return array.ndim <= 1 and array.size <= _MOST


def _key(array: Array, whole: bool) -> tuple[Any, ...]:
    return array.shape, array.dtype.str, array.tobytes() if whole else None
