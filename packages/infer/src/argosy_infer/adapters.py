"""Low-rank adapters (Hu et al., "LoRA", 2021) of a program's weights, chosen for each row of a batch.

:func:`add_adapters` makes a program with the further input ``adapter`` [batch]. Every row's products are grouped by its
adapter (Chen et al., "Punica", 2023), and by its expert where a weight has several matrices, so that rows of many
adapters share a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy_infer.errors import AdapterError
from argosy_infer.export import LoadedProgram
from argosy_infer.weights import FACTOR_NAMES, SCALED_INPUTS, apply_operator, weight_operand
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.declare.operator import get_operator
from argosy_pir.builder import Builder
from argosy_pir.core import Operation
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import Value
from argosy_tensorcore.dtype import as_dtype

__all__ = ["ADAPTER", "Adapter", "add_adapters"]

Array = np.ndarray[Any, Any]
ADAPTER = "adapter"
"""The input that chooses each row's adapter: 0 for none, else its place in the list, from 1 on."""
_FACTORS = (".factors", "_factors")
"""Ends of names of what passes of `compress` multiply inputs with when a program runs."""
_ROUNDS, _DIVIDES, _MULTIPLIES = ({f"phi.{a}", f"prim.{b}"} for a, b in (
    ("round", "round"), ("divide", "div"), ("multiply", "mul")
))  # fmt: skip
_ROUNDING = _ROUNDS | _DIVIDES | _MULTIPLIES | {
    "phi.astype", "prim.cast", "phi.clip", "prim.maximum", "prim.minimum", "phi.subtract", "phi.add",
}  # fmt: skip
"""What makes bytes of inputs, and of these what they stand for."""


@dataclass(frozen=True)
class Adapter:
    """What is added to weights [in, out] by name: the product of two ``factors`` [in, r] and [r, out] each; of weights
    [experts, in, out] those of each expert, [experts, in, r] and [experts, r, out]."""

    factors: Mapping[str, tuple[Array, Array]]


def add_adapters(loaded: LoadedProgram, adapters: Sequence[Adapter]) -> LoadedProgram:
    """The program with a further input ``adapter`` [batch] int64: rows with 0 are those of ``loaded``, rows with i
    have ``adapters[i - 1]``. The first input is tokens [batch, sequence]; ``loaded`` stays as it is.

    Products with floats and with weights of few bits take adapters, also beside inputs in bytes that are symmetric
    (factors are multiplied with the inputs as floats), after passes of `compress` but for weights whose
    inputs were divided by factors: adapters are for inputs as they were, and should be added before. Raises
    :class:`AdapterError` naming such a weight, one that the program does not have, or that is of another shape.
    """
    program, states = loaded.program.clone(), dict(loaded.states)
    products, scaled = _products(program), program.attributes.get(SCALED_INPUTS, ())
    batch, sequence = program.inputs[0].shape
    chosen = program.add_input(TensorType((batch,), "int64"), ADAPTER)
    first = program.block.first
    assert first is not None  # at least a return
    with emit_at(Builder.before(first)):
        prim.check_index(chosen, operator=ADAPTER, low=0, size=len(adapters) + 1)
        each = prim.broadcast(chosen, shape=(batch, sequence), axes=(0,))
        rows = prim.reshape(each, shape=(batch * sequence, 1))
    for name in dict.fromkeys(name for adapter in adapters for name in adapter.factors):
        if name in scaled:
            raise AdapterError(f"inputs of {name} were divided by factors when it was compressed: add adapters before")
        if name not in products:
            raise AdapterError(
                f"adapters change {name}; the program has products with {sorted(products)[:3]} ... and none with it"
            )
        product = products[name]
        stacked = _stack_factors(name, adapters, product)
        arguments = []
        for end, array in zip(FACTOR_NAMES, stacked, strict=True):
            state = f"{name}{end}"
            arguments.append(program.add_state(state, TensorType(array.shape, product.x.dtype)).argument)
            states[state] = array
        _add_delta(product, rows, arguments)
    return LoadedProgram(program, states)


@dataclass(frozen=True)
class _Product:
    """The product of ``x`` with a weight [in, out] that ``op`` has as its result, or with those of ``experts`` (how
    many: ``count``) that ``chosen`` [tokens, c] names for x [tokens, c, in]."""

    op: Operation
    x: Value
    count: int = 0
    chosen: Value | None = None

    @property
    def sizes(self) -> tuple[Any, Any]:
        """Inputs and outputs."""
        return self.x.shape[-1], self.op.result.shape[-1]


def _products(program: Program) -> dict[str, _Product]:
    """The products with a weight by its name; those of numbers of few bits have the name of what they stand for."""
    names: dict[Value, str] = {state.argument: state.name.removesuffix(".bytes") for state in program.states}
    found = {}
    for op in program.block:
        if op.name == "phi.gather_mm":
            given = get_operator(op.kind).signature.regroup(op.operands, op.attributes)
            weight, made = _numbers_of(given["weight"]), _made_of_floats(op, given["x"], names)
            if weight in names and made is not None:
                count = int(given["weight"].shape[0])
                found[names[weight].removesuffix("_numbers")] = _Product(*made, count, given["index"])
        elif (operands := weight_operand(op)) is not None and operands[0].ndim in (2, 3):
            weight = _before(operands[1], "phi.astype")  # routers of 16 bits choose in float32
            made = _made_of_floats(op, operands[0], names)
            if weight not in names or made is None:
                continue
            name = names[weight]
            name = f"{name.removesuffix('.numbers')}.weight" if name.endswith(".numbers") else name
            found[name] = _Product(*made)
    return found


def _made_of_floats(op: Operation, x: Value, names: Mapping[Value, str]) -> tuple[Operation, Value] | None:
    """What gives the results of the product ``op`` of ``x`` in floats, and the floats that they are made of. None for
    inputs in bytes that are not symmetric."""
    given = _before_rounding(x)
    if x.dtype != "int8":
        return (op, _inputs_as_they_are(x, names)) if given is None and "int" not in x.dtype else None
    users = [user for user in op.result.users if user.name in _MULTIPLIES]  # by the steps of rows
    return (users[0], _inputs_as_they_are(given, names)) if given is not None and len(users) == 1 else None


def _numbers_of(weight: Value) -> Value:
    """What lies in memory of the weight of a grouped product: two numbers may share a byte, in whose high half the
    last ones are."""
    weight = _before(weight, "phi.transpose")
    for concat, shift in (("phi.concat", "phi.bitwise_right_shift"), ("prim.concat", "prim.shift_right")):
        if _made_by(weight) == concat:
            weight = _before(weight.owner.operand(1), shift)  # type: ignore[union-attr]
    return weight


def _inputs_as_they_are(value: Value, names: Mapping[Value, str]) -> Value:
    """The inputs of a product before factors that passes of `compress` multiply them with, and before the order that
    a weight has them in, or that of each expert."""
    value = _before(value, "phi.index_select")
    if _made_by(value) == "phi.stack":
        places = value.owner.operand(0)  # type: ignore[union-attr]
        value = _before(_before(places, "phi.index_sample"), "phi.unbind")
    if _made_by(value) in _MULTIPLIES:
        x, factors = value.owner.operands  # type: ignore[union-attr]
        value = x if names.get(_before(factors, "prim.broadcast"), "").endswith(_FACTORS) else value
    return value


def _before_rounding(value: Value) -> Value | None:
    """The floats that inputs in bytes, or what these stand for, were rounded from; None for other inputs."""
    is_rounded = False
    while (name := _made_by(value)) in _ROUNDING:
        value, is_rounded = value.owner.operand(0), is_rounded or name in _ROUNDS  # type: ignore[union-attr]
        if name in _DIVIDES:
            return _before(_before(value, "prim.cast"), "phi.astype") if is_rounded else None
    return None


def _before(value: Value, name: str) -> Value:
    """What an operation of that name has turned, ordered or converted."""
    op = value.owner
    return op.operand(0) if isinstance(op, Operation) and op.name == name else value


def _made_by(value: Value) -> str:
    """The name of the operation that gives a value; empty for inputs and states."""
    return value.owner.name if isinstance(value.owner, Operation) else ""


def _stack_factors(name: str, adapters: Sequence[Adapter], product: _Product) -> tuple[Array, Array]:
    """The factors [matrices, in, r] and [matrices, r, out] of a weight, of zeros where there are none; of experts those
    of an adapter follow each other."""
    pairs = [adapter.factors.get(name) for adapter in adapters]
    rank = max(pair[0].shape[-1] for pair in pairs if pair is not None)
    sizes, experts = product.sizes, (product.count,) if product.count else ()
    dtype = as_dtype(product.x.dtype).numpy
    down, up = (np.zeros((len(pairs) + 1, *experts, *shape), dtype) for shape in ((sizes[0], rank), (rank, sizes[1])))
    for i, pair in enumerate(pairs):
        if pair is None:
            continue
        given = (*pair[0].shape[:-1], pair[1].shape[-1])
        if given != (*experts, *sizes):
            raise AdapterError(f"adapter {i + 1} changes {name} as {list(given)}; it is {[*experts, *sizes]}")
        own = pair[0].shape[-1]
        down[i + 1, ..., :own], up[i + 1, ..., :own, :] = pair
    return down.reshape(-1, sizes[0], rank), up.reshape(-1, rank, sizes[1])


def _add_delta(product: _Product, rows: Value, factors: Sequence[Value]) -> None:
    """Give users of a product its sum with the product of ``x`` and each row's factors."""
    op, x = product.op, product.x
    result, uses = op.result, op.result.uses
    with emit_at(Builder.after(op)):
        made = x
        if product.chosen is None:
            made = prim.reshape(x, shape=(rows.shape[0], 1, x.shape[-1]))
        else:
            shape = product.chosen.shape
            first = prim.broadcast(prim.reshape(rows, shape=shape[:1]), shape=shape, axes=(0,))
            count = prim.constant(product.count, "int64", shape)
            rows = prim.add(prim.cast(product.chosen, dtype="int64"), prim.mul(first, count))
        for factor in factors:
            made = apply_operator("gather_mm", made, rows, factor, location=op.location)
        total = prim.add(result, prim.cast(prim.reshape(made, shape=result.shape), dtype=result.dtype))
    for user, index in uses:
        user.set_operand(index, total)
