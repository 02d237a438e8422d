"""Products with weights: where a program has them, and what is put in their place.

A *weight product* is a linear layer or a product whose second operand is a state [in, out] or [out, in] that nothing
else uses and the program does not change. Passes of `argosy_infer.compress` put products of fewer bits in its place;
:func:`lay_out_weights` turns weights round, so that all terms of a result lie side by side: they are read faster so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy_infer.export import LoadedProgram
from argosy_phi_ops import prim
from argosy_phi_ops.context import context, emit_at
from argosy_phi_ops.declare.operator import get_operator
from argosy_pir.builder import Builder
from argosy_pir.core import Operation
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import Value
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.storage import StridedArray, host_device

__all__ = [
    "FACTOR_NAMES",
    "SCALED_INPUTS",
    "Replacement",
    "WeightProduct",
    "apply_operator",
    "find_expert_products",
    "find_weight_products",
    "lay_out_array",
    "lay_out_weights",
    "pack_outputs",
    "replace_products",
    "unpack_experts",
    "unpack_outputs",
    "weight_operand",
]

Array = np.ndarray[Any, Any]
_PRODUCTS = {"phi.linear": "weight", "phi.matmul": "y"}
"""Operators that multiply with a weight, and the operand that it is."""
_FLOATS = ("float32", "bfloat16", "float16")
FACTOR_NAMES = (".lora_a", ".lora_b")
"""Ends of names of adapters' factors, which are no weights of a program though grouped products multiply with them."""

SCALED_INPUTS = "scaled_inputs"
"""The attribute of a program that names weights whose inputs are no longer those that they were made for: what makes
them was divided by factors. Adapters of the weights as they were are wrong then."""


@dataclass(frozen=True)
class WeightProduct:
    """The product ``op`` of ``x`` [..., in] with the weight that is the state ``name``, [out, in] where ``is_turned``,
    else [in, out]; ``bias`` [out] or None is added. A grouped one has weights [experts, in, out], of which ``chosen``
    [tokens, c] names those of x [tokens, c, in]."""

    op: Operation
    name: str
    x: Value
    bias: Value | None
    is_turned: bool
    chosen: Value | None = None

    def matrices(self, states: Mapping[str, Array]) -> tuple[Array, ...]:
        """The weight as [in, out], or those of a grouped one, expert by expert."""
        weight = states[self.name]
        if self.chosen is not None:
            return tuple(weight)
        return (weight.T if self.is_turned else weight,)


@dataclass(frozen=True)
class Replacement:
    """New ``states`` instead of a weight, and what ``build(x, bias, states by name)`` makes of them: the product; what
    names the experts of a grouped one is "chosen" among these."""

    states: Mapping[str, Array]
    build: Callable[[Value, Value | None, Mapping[str, Value]], Value]


def find_weight_products(program: Program) -> tuple[dict[str, WeightProduct], dict[str, str]]:
    """The weight products of a program by the weight's name, and why other weights have none."""
    names: dict[Value, str] = {state.argument: state.name for state in program.states}
    kept = {s.argument for s, made in zip(program.states, program.state_updates, strict=True) if made is s.argument}
    found: dict[str, WeightProduct] = {}
    skipped: dict[str, str] = {}
    for op in [op for op in program.block if op.name in _PRODUCTS]:
        given = get_operator(op.kind).signature.regroup(op.operands, op.attributes)
        weight: Value = given[_PRODUCTS[op.name]]
        name = names.get(weight)
        if name is None:
            continue
        reason = _reason(given, weight) if weight in kept else "the program changes it"
        if reason:
            skipped[name] = reason
        else:
            found[name] = WeightProduct(op, name, given["x"], given.get("bias"), bool(given.get("transpose_y")))
    return found, skipped


def find_expert_products(program: Program) -> tuple[dict[str, WeightProduct], dict[str, str]]:
    """The grouped products of a program with weights in floats by the weight's name, and why others are none."""
    names: dict[Value, str] = {state.argument: state.name for state in program.states}
    kept = {s.argument for s, made in zip(program.states, program.state_updates, strict=True) if made is s.argument}
    found: dict[str, WeightProduct] = {}
    skipped: dict[str, str] = {}
    for op in [op for op in program.block if op.name == "phi.gather_mm"]:
        given = get_operator(op.kind).signature.regroup(op.operands, op.attributes)
        weight: Value = given["weight"]
        if weight not in names or weight.dtype not in _FLOATS or names[weight].endswith(FACTOR_NAMES):
            continue
        users = [user for user in weight.users if user.name != "builtin.return"]
        if len(users) != 1 or weight not in kept:
            skipped[names[weight]] = f"{len(users)} operations use it" if weight in kept else "the program changes it"
        else:
            name = names[weight]
            found[name] = WeightProduct(op, name, given["x"], given.get("bias"), False, given["index"])
    return found, skipped


def weight_operand(op: Operation) -> tuple[Value, Value] | None:
    """The other operand and the weight of a linear layer or product, of floats or of few bits; None for others."""
    name = {**_PRODUCTS, "phi.weight_only_linear": "weight"}.get(op.name)
    if name is None:
        return None
    given = get_operator(op.kind).signature.regroup(op.operands, op.attributes)
    return given["x"], given[name]


def _reason(given: Mapping[str, Any], weight: Value) -> str:
    """Why a product is no weight product; empty where it is."""
    users = [user for user in weight.users if user.name != "builtin.return"]
    if weight.ndim != 2 or weight.dtype not in _FLOATS or not all(isinstance(n, int) for n in weight.shape):
        return f"it is {weight.type}, no matrix of floats"
    if len(users) != 1 or given["x"] is weight:
        return f"{len(users)} operations use it"
    if given.get("transpose_x"):
        return "its product transposes the other operand"
    return ""


def apply_operator(name: str, *arguments: Any, location: Any = None, **keywords: Any) -> Value:
    """The result of the operator ``name`` on IR values, where the ambient builder stands."""
    operands, attributes = get_operator(name).signature.bind(arguments, keywords)
    builder = context().builder
    assert builder is not None
    return builder.create(f"phi.{name}", operands, attributes, location=location).result


def replace_products(loaded: LoadedProgram, made: Mapping[WeightProduct, Replacement]) -> LoadedProgram:
    """The program with replacements of weight products; ``loaded`` stays as it is."""
    source, by_name = loaded.program, {product.name: given for product, given in made.items()}
    by_op = {product.op: product for product in made}
    target, values, parts = Program(source.name), dict[Value, Value](), dict[str, dict[str, Value]]()
    target.attributes.update(source.attributes)
    for function in source.functions.values():
        target.add_function(function.clone())
    for given in source.inputs:
        values[given] = target.add_input(given.type, given.name_hint)
    states: dict[str, Array] = {}
    for state in source.states:
        if state.name in by_name:
            new = by_name[state.name].states
            types = {name: TensorType(array.shape, as_dtype(array.dtype).name) for name, array in new.items()}
            parts[state.name] = {name: target.add_state(name, type).argument for name, type in types.items()}
            states.update(new)
        else:
            values[state.argument] = target.add_state(state.name, state.type, state.attributes).argument
            states[state.name] = loaded.states[state.name]
    builder, terminator = Builder.at_end(target.block), source.block.last
    for op in source.block:
        product = by_op.get(op)
        if product is not None:
            bias = None if product.bias is None else values[product.bias]
            with emit_at(builder):
                own = parts[product.name] | ({} if product.chosen is None else {"chosen": values[product.chosen]})
                values[op.result] = by_name[product.name].build(values[product.x], bias, own)
        elif op is not terminator:
            target.block.append(op.clone(values))
    kept = {s.name: values.get(made) for s, made in zip(source.states, source.state_updates, strict=True)}
    updates = [kept.get(state.name) or state.argument for state in target.states]
    target.set_outputs([values[value] for value in source.outputs], updates)
    return LoadedProgram(target, states)


def lay_out_array(array: Array) -> Array:
    """A row-major copy in memory of the host device. Large ones lie in huge pages and begin with a cache line, as
    numpy's need not, so that memory is read faster."""
    made = StridedArray.empty(array.shape, array.dtype, host_device()).ndarray
    made[...] = array
    return made


def pack_outputs(numbers: Array) -> Array:
    """Numbers of four bits [..., out, in] two to a byte [..., out / 2, in], as `weight_quantize` packs them: output
    ``i`` is in the low half, and ``i + out / 2`` in the high one."""
    half = numbers.shape[-2] // 2
    packed: Array = (numbers[..., :half, :] & 15) | (numbers[..., half:, :] << 4)
    return packed


def unpack_outputs(packed: Array) -> Array:
    """The numbers [..., out, in] that :func:`pack_outputs` has packed."""
    return np.concatenate([(packed << 4).astype(np.int8) >> 4, packed >> 4], axis=-2)


def unpack_experts(packed: Value) -> Value:
    """The same within a program: [experts, out / 2, in] to [experts, out, in]."""
    low = prim.shift_right(prim.shift_left(packed, 4), 4)
    return prim.concat(low, prim.shift_right(packed, 4), axis=1)  # type: ignore[no-any-return]


def lay_out_weights(loaded: LoadedProgram) -> LoadedProgram:
    """The program with weights [out, in] in all weight products, copied where they lie otherwise: those that are mapped
    from a file of that order stay its pages."""
    found, _ = find_weight_products(loaded.program)
    return replace_products(
        loaded, {p: _transpose_weight(p, loaded.states[p.name]) for p in found.values() if not p.is_turned}
    )


def _transpose_weight(product: WeightProduct, weight: Array) -> Replacement:
    def build(x: Value, bias: Value | None, states: Mapping[str, Value]) -> Value:
        where = product.op.location
        made = apply_operator("matmul", x, states[product.name], transpose_y=True, location=where)
        return made if bias is None else apply_operator("add", made, bias, location=where)

    turned = weight.T
    return Replacement({product.name: turned if turned.flags.c_contiguous else lay_out_array(turned)}, build)
