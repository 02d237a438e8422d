"""From an ONNX graph to a program: nodes run in order, under a tracer, with argosy's operators.

What is known when the program is made (weights, what a caller binds, and what nodes make of these alone) is computed
once, then; small such tensors are constants of the program, others states that have the value's name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from argosy_infer.errors import ProgramFileError
from argosy_infer.onnx.document import Document, dtype_name, read_array
from argosy_infer.onnx.registry import Operator, find_operator
from argosy_infer.onnx.sizes import compute_sizes
from argosy_infer.onnx.tensors import is_known, operand_of, tensor_of
from argosy_phi_ops.capture.shape_values import infer_sizes
from argosy_phi_ops.capture.tracer import CapturedProgram, Tracer
from argosy_phi_ops.context import set_grad_enabled
from argosy_phi_ops.eager.dispatch import suspend_layers
from argosy_pir.dims import SymExpr
from argosy_pir.types import TensorType
from argosy_tensorcore.interchange import to_numpy

__all__ = ["Node", "UnknownValue", "capture_document"]

Array = np.ndarray[Any, Any]
Scope = dict[str, Any]
_KINDS = onnx.AttributeProto


class UnknownValue(NotImplementedError):
    """An input whose elements have to be known when the program is made depends on what the program is given; ``value``
    is its name."""

    def __init__(self, message: str, value: str) -> None:
        super().__init__(message)
        self.value = value


class Node:
    """A node while it runs: its ``version``, how many ``outputs`` are wanted, and how its subgraphs are run."""

    def __init__(self, proto: Any, version: int, capture: _Capture, scope: Scope, attributes: dict[str, Any]) -> None:
        self.proto, self.version, self.attributes = proto, version, attributes
        self._capture, self._scope = capture, scope

    @property
    def outputs(self) -> int:
        """One more than the position of the last output that has a name."""
        return max((i + 1 for i, name in enumerate(self.proto.output) if name), default=0)

    def value(self, position: int) -> Any:
        """Input ``position`` as it is around the node: known ones are no values of the program. None: there is none."""
        names = self.proto.input
        return self._scope[names[position]] if position < len(names) and names[position] else None

    def known(self, position: int) -> Array:
        """The elements of an input. Raises UnknownValue where they depend on what the program is given."""
        return self._capture.known(self, position, self.value(position))

    def unknown(self, position: int, why: str = "") -> UnknownValue:
        """The error that asks for the elements of an input; ``why`` is said before."""
        name = self.proto.input[position]
        return UnknownValue(
            f"{why}{self._capture.document.name}: {self} has to know {name!r} when the program is made, and that "
            "depends on what the program is given",
            name,
        )

    def operand(self, x: Any) -> Any:
        """A tensor to record operators on: of a known one, if small, a constant of the program."""
        return operand_of(x, self._capture.tracer)

    def run(self, graph: Any, inputs: Sequence[Any] = ()) -> list[Any]:
        """What a subgraph, which sees the values around the node, makes of ``inputs``."""
        scope = dict(self._scope)
        scope.update(zip((x.name for x in graph.input), inputs, strict=True))
        return self._capture.run_graph(graph, scope)

    def __str__(self) -> str:
        domain = self.proto.domain and f"{self.proto.domain}."
        return (
            f"node {self.proto.name or self.proto.output[0]!r} ({domain}{self.proto.op_type}, version {self.version})"
        )


def capture_document(
    document: Document, bound: Mapping[str, Array], shapes: Mapping[str, Sequence[int]]
) -> CapturedProgram:
    """The graph as a program. ``bound`` are values of inputs that the program has not, ``shapes`` sizes of others."""
    recording = set_grad_enabled(False)
    try:
        with Tracer(document.model.graph.name or "main") as tracer:
            capture = _Capture(document, tracer)
            scope = {name: tensor_of(array, name) for name, array in bound.items()}
            outputs = capture.run_graph(document.model.graph, capture.add_inputs(scope, shapes))
            return tracer.finish([tracer.wrap(tracer.value(x)) for x in outputs])
    finally:
        set_grad_enabled(recording)


class _Capture:
    def __init__(self, document: Document, tracer: Tracer) -> None:
        self.document, self.tracer = document, tracer
        self.versions, self.running = document.versions, list[str]()

    def add_inputs(self, scope: Scope, shapes: Mapping[str, Sequence[int]]) -> Scope:
        """``scope`` with the program's inputs: those of the graph that have no value."""
        graph = self.document.model.graph
        given = {x.name for x in graph.initializer} | scope.keys()
        for x in graph.input:
            if x.name not in given:
                type = input_type(x, shapes.get(x.name), self.document.name)
                scope[x.name] = self.tracer.input(type, x.name)
        return scope

    def run_graph(self, graph: Any, scope: Scope) -> list[Any]:
        """The outputs of ``graph``, whose nodes put their results into ``scope``."""
        for tensor in graph.initializer:
            scope.setdefault(tensor.name, tensor_of(read_array(tensor, self.document.folder), tensor.name))
        if graph.sparse_initializer:
            raise NotImplementedError(f"{self.document.name}: sparse initialisers")
        for node in graph.node:
            self.run_node(node, scope, {})
        return [scope[x.name] for x in graph.output]

    def run_node(self, proto: Any, scope: Scope, references: Mapping[str, Any]) -> None:
        """Run one node. ``references`` are the attributes of the function around it."""
        attributes = dict(self._attributes(proto, references))
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        function = self.document.functions.get((proto.domain, proto.op_type))
        results: Sequence[Any]
        if function is not None:
            results = self._run_function(function, [scope[x] if x else None for x in proto.input], attributes)
        else:
            node = Node(proto, self.versions.get(domain, 1), self, scope, attributes)
            op = find_operator(domain, proto.op_type, node.version)
            if op is None:
                raise NotImplementedError(f"{self.document.name}: {node} is not implemented")
            results = self._results(op, node, scope)
        for name, result in zip(proto.output, results, strict=False):
            if name:
                scope[name] = result
                if result is not None and is_known(result):
                    result.name = name

    def _results(self, op: Operator, node: Node, scope: Scope) -> Sequence[Any]:
        inputs = [scope[name] if name else None for name in node.proto.input]
        sizes = self._sizes(node, inputs)
        if sizes is not None:
            return (sizes,)
        folds = op.may_fold([x is None or is_known(x) for x in inputs])
        try:
            arguments = [self._argument(op, node, i, x, folds) for i, x in enumerate(inputs)]
            keywords = self._keywords(op, node)
            if folds:
                with suspend_layers():
                    results = op.function(*arguments, **keywords)
            else:
                results = op.function(*arguments, **keywords)
        except (ProgramFileError, UnknownValue):
            raise  # of a node in a subgraph
        except (ValueError, TypeError, IndexError, ArithmeticError, MemoryError) as error:
            raise ProgramFileError(f"{self.document.name}: {node}: {error}") from error
        except NotImplementedError as error:
            raise NotImplementedError(f"{self.document.name}: {node}: {error}") from error
        return results if isinstance(results, (tuple, list)) else (results,)

    def _sizes(self, node: Node, inputs: Sequence[Any]) -> Any:
        """What a node computes of sizes, some of which are symbols; None for what is no shape arithmetic."""
        if (
            not inputs
            or any(x is None or x.payload.dtype.kind not in "iu" for x in inputs)
            or all(map(is_known, inputs))
        ):
            return None
        found = [to_numpy(x) if is_known(x) else infer_sizes(self.tracer.value(x)) for x in inputs]
        sizes = [x for x in found if x is not None]
        return compute_sizes(node.proto.op_type, node.attributes, sizes) if len(sizes) == len(found) else None

    def _argument(self, op: Operator, node: Node, position: int, x: Any, folds: bool) -> Any:
        if op.input_name(position) is None:
            raise ProgramFileError(f"{self.document.name}: {node} has {len(node.proto.input)} inputs")
        if x is None:
            return None
        if op.needs_value(position):
            return self.known(node, position, x)
        return x if folds else operand_of(x, self.tracer)

    def known(self, node: Node, position: int, x: Any) -> Array:
        """The elements of input ``position`` of a node, which is ``x``: numbers, or sizes that are symbols."""
        if is_known(x):
            return to_numpy(x)
        found = infer_sizes(self.tracer.value(x))
        if found is None:
            raise node.unknown(position)
        return found

    def _keywords(self, op: Operator, node: Node) -> dict[str, Any]:
        keywords: dict[str, Any] = {}
        for name, value in node.attributes.items():
            if name in op.attributes or op.takes_all:
                keywords[name] = value
            elif name in op.inputs:
                keywords[name] = np.asarray(value) if name in op.known else value
            else:
                raise NotImplementedError(f"the attribute {name!r}")
        return keywords | ({"node": node} if "node" in op.attributes else {})

    def _attributes(self, proto: Any, references: Mapping[str, Any]) -> Any:
        for attribute in proto.attribute:
            if not attribute.ref_attr_name:
                yield attribute.name, self._attribute(attribute)
            elif attribute.ref_attr_name in references:
                yield attribute.name, references[attribute.ref_attr_name]

    def _attribute(self, attribute: Any) -> Any:
        if attribute.type == _KINDS.TENSOR:
            return read_array(attribute.t, self.document.folder)
        value = onnx.helper.get_attribute_value(attribute)
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if attribute.type == _KINDS.STRINGS:
            return tuple(each.decode("utf-8", "replace") for each in value)
        return value if attribute.type in (_KINDS.GRAPH, _KINDS.INT, _KINDS.FLOAT) else tuple(value)

    def _run_function(self, function: Any, inputs: Sequence[Any], attributes: dict[str, Any]) -> list[Any]:
        """The results of a function that the model defines."""
        if function.name in self.running:
            raise ProgramFileError(f"{self.document.name}: the function {function.name!r} calls itself")
        self.running.append(function.name)
        defaults = {a.name: self._attribute(a) for a in function.attribute_proto}
        scope: Scope = dict(zip(function.input, [*inputs, *[None] * len(function.input)], strict=False))
        outer = self.versions
        self.versions = {each.domain or "": each.version for each in function.opset_import}
        try:
            for node in function.node:
                self.run_node(node, scope, defaults | attributes)
        finally:
            self.versions = outer
            self.running.pop()
        return [scope.get(name) for name in function.output]


def input_type(x: Any, shape: Sequence[int] | None, model: str) -> TensorType:
    """The type of a graph's input. Sizes that it leaves open are symbols: those of its names, or of its own."""
    kind = x.type.WhichOneof("value")
    if kind != "tensor_type":
        raise NotImplementedError(f"{model}: the input {x.name!r} is no tensor but a {kind}")
    described = x.type.tensor_type
    dtype = dtype_name(described.elem_type, f"{model}: the input {x.name!r}")
    if shape is not None:
        return TensorType(tuple(shape), dtype)
    if not described.HasField("shape"):
        raise NotImplementedError(f"{model}: the input {x.name!r} is of any rank; say its shape")
    return TensorType(tuple(_size(x.name, i, n) for i, n in enumerate(described.shape.dim)), dtype)


def _size(name: str, axis: int, dim: Any) -> Any:
    if dim.WhichOneof("value") != "dim_value":
        words = dim.dim_param or f"{name}_{axis}"
        return SymExpr.symbol("".join(c if c.isalnum() else "_" for c in words))
    if dim.dim_value < 0:
        raise ProgramFileError(f"the input {name!r} has the size {dim.dim_value} along axis {axis}")
    return dim.dim_value
