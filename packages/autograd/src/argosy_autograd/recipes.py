"""How to go back through an operator: what all applications that look alike have in common.

A :class:`Recipe` says which operands and results the derivative reads, and runs it: by a hand-written kernel, or the
derived program, compiled when it is hot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from argosy_autograd.errors import MissingRule
from argosy_autograd.solutions import KERNELS
from argosy_phi_ops.bounded_cache import BoundedCache
from argosy_phi_ops.declare.attribute_types import attribute_key
from argosy_phi_ops.eager.native import least_steps_back, way_back
from argosy_phi_ops.eager.tiering import NativeKernel, TieredKernel
from argosy_tensorcore.dtype import as_dtype, default_dtype, default_listeners
from argosy_tensorcore.storage import ArrayType, StridedArray

if TYPE_CHECKING:
    from argosy_autograd.derivatives import Derivative

__all__ = [
    "Recipe", "as_array", "by_program", "complete", "derive", "or_zeros", "present", "recipe_of",
    "recipe_of_application",
]  # fmt: skip


def derive(key: tuple[Any, ...], attributes: dict[str, Any], present: frozenset[int] | None = None) -> Derivative:
    """See :func:`argosy_autograd.derivatives.derive`, which loads the rules: programs that get by with kernels do
    not need them."""
    global _derive
    if _derive is None:
        _derive = import_module("argosy_autograd.derivatives").derive
    found: Derivative = _derive(key, attributes, present)
    return found


_derive: Callable[..., Derivative] | None = None


class Recipe:
    """What all applications of an operator have in common whose operands have the same types and want the same
    gradients. ``key`` is what :func:`derive` takes; ``keeps`` are positions in (operands..., results...) of what is
    kept; ``run(grads, saved, attributes, key)`` is the hand-written derivative, else the derived program, either of
    them compiled when it is hot; ``code`` tells native code what it is: 1 passes the gradient on as it is. ``back`` is
    what native code reads to run a compiled one. ``missing``: there is no derivative, and each application notes its
    line, for the error."""

    __slots__ = ("attributes", "back", "code", "keeps", "key", "missing", "name", "run")

    def __init__(self, op: Any, types: Sequence[Any], attributes: dict[str, Any], wants: tuple[bool, ...]) -> None:
        self.name = op.name
        self.attributes = attributes
        self.back: tuple[Any, ...] | None = None
        self.key = (op, tuple(types), attribute_key(attributes) if attributes else (), wants)
        self.missing = False
        kernel = KERNELS.get(op.name)
        if kernel is not None and kernel.fits(types, attributes):
            self.keeps = kernel.keeps(wants)
            self.run: Callable[..., Any] = kernel.run_for(types)
        else:
            keeps = _keeps(self.key, attributes)
            self.missing, self.keeps = keeps is None, keeps or ()
            self.run = by_program
        self.code = int(self.run is KERNELS["add"].alike)
        if not self.code and all([type(t) is tuple for t in types]):
            self.run = TieredKernel(
                self.run, self._program, self._compile_rule, self._replace, self._least_native_steps
            )

    def _program(self) -> Any:
        """The derivative as a program of primitives; None where there is none."""
        try:
            return derive(self.key, self.attributes).operator.expansion.program
        except MissingRule:
            return None

    def _least_native_steps(self) -> int:
        """How many steps native code gains something for: one where it goes back without Python."""
        types = derive(self.key, self.attributes).types
        kinds = [(as_dtype(t.dtype), tuple([n for n in t.shape if isinstance(n, int)])) for t in types]
        return least_steps_back(kinds)

    def _compile_rule(self, native: NativeKernel) -> Callable[..., Any]:
        rule = derive(self.key, self.attributes)
        self.back = self._native_backward(rule, native)
        return _arrange(rule, native, self.key)

    def _native_backward(self, rule: Derivative, native: NativeKernel) -> tuple[Any, ...] | None:
        """What native code reads to go back by itself; None where Python has more to do than run the program."""
        op, kinds, _, wants = self.key
        wanted = tuple([i for i, want in enumerate(wants) if want])
        complete = rule.operands == wanted and getattr(op, "reads", None) is None
        single = len(rule.types) == len(kinds) + 1 and rule.cotangents in ((), (0,))
        if native.code is None or not complete or not single or not set(rule.keeps) <= set(self.keeps):
            return None
        result = rule.types[-1]
        kind = as_dtype(result.dtype), tuple([n for n in result.shape if isinstance(n, int)])  # compiled: all of them
        places = [self.keeps.index(i) for i in rule.keeps]
        return way_back(native.code, kinds, kind, places, bool(rule.cotangents), wanted)

    def _replace(self, run: Callable[..., Any]) -> None:
        self.run = run


_recipes = BoundedCache(1024)
"""Recipes of applications that are not kept."""
default_listeners.append(_recipes.clear)


def recipe_of(op: Any, types: Sequence[Any], attributes: dict[str, Any], wants: tuple[bool, ...]) -> Recipe:
    """The recipe of an application that is not kept."""
    key = (op, tuple(types), attribute_key(attributes) if attributes else (), wants, default_dtype())
    found: Recipe | None = _recipes.get(key)
    if found is None:
        found = _recipes[key] = Recipe(op, types, attributes, wants)
    return found


def present(op: Any, grads: Sequence[Any]) -> frozenset[int] | None:
    """The results that have cotangents, where others have none and the operator wants them apart; None otherwise."""
    if not getattr(op, "apart", False) or all([g is not None for g in grads]):
        return None
    return frozenset([i for i, g in enumerate(grads) if g is not None])


def by_program(grads: Sequence[Any], saved: dict[int, Any], attributes: dict[str, Any], key: Any) -> list[Any]:
    """The derivative by the derived program."""
    rule = derive(key, attributes, present(key[0], grads))
    return _gradients(rule, rule.run, grads, saved, key)


def _gradients(
    rule: Derivative,
    run: Callable[[Sequence[Any]], list[Any]],
    grads: Sequence[Any],
    saved: dict[int, Any],
    key: Any,
) -> list[Any]:
    """Gradients of all operands by ``run``, which computes the program of ``rule``."""
    types = rule.types
    arrays = [as_array(saved[i], types[i].dtype) for i in rule.keeps]
    count = len(key[1])
    arrays += [or_zeros(grads[i], types[count + i]) for i in rule.cotangents]
    return complete(rule, run(arrays), key, grads)


def _arrange(rule: Derivative, run: Callable[[Sequence[Any]], list[Any]], key: Any) -> Callable[..., Any]:
    """:func:`_gradients` by ``run``, where all that follows from the rule is worked out before."""
    types, count = rule.types, len(key[1])
    keeps = [(i, types[i].dtype) for i in rule.keeps]
    cotangents = [(i, types[count + i]) for i in rule.cotangents]
    whole = rule.operands == tuple(range(count)) and getattr(key[0], "reads", None) is None
    apart = getattr(key[0], "apart", False)

    def gradients(grads: Sequence[Any], saved: dict[int, Any], attributes: dict[str, Any], key: Any) -> Any:
        if apart and present(key[0], grads) is not None:
            return by_program(grads, saved, attributes, key)
        arrays = [as_array(saved[i], dtype) for i, dtype in keeps]
        arrays += [or_zeros(grads[i], type) for i, type in cotangents]
        return run(arrays) if whole else complete(rule, run(arrays), key, grads)

    return gradients


def complete(rule: Derivative, made: Sequence[Any], key: Any, grads: Sequence[Any]) -> list[Any]:
    """``made`` by operand, with zeros for operands that want a gradient and get none: the derivative is zero wherever
    it exists (floor). Of a derivative, which was not written by anybody, they get None: it does not depend on them."""
    found = dict(zip(rule.operands, made, strict=True))
    reads = getattr(key[0], "reads", None)
    if reads is not None:
        moving = frozenset().union(*(read for read, g in zip(reads, grads, strict=True) if g is not None))
        return [found[i] if i in found and i in moving else None for i in range(len(key[1]))]
    return [
        found[i] if i in found else np.zeros(t[1], t[0].numpy) if want else None
        for i, (t, want) in enumerate(zip(key[1], key[3], strict=True))
    ]


def recipe_of_application(application: Any, wants: tuple[bool, ...]) -> Recipe:
    """The recipe of an application that will come again."""
    types = [(t.dtype, t.shape) if type(t) is ArrayType else t for t in application.types]
    return Recipe(application.op, types, application.attributes, wants)


def _keeps(key: tuple[Any, ...], attributes: dict[str, Any]) -> tuple[int, ...] | None:
    """What the derivative reads; None where there is none: only asking for the gradient fails."""
    try:
        return derive(key, attributes).keeps
    except MissingRule:
        return None


def as_array(value: Any, dtype: str) -> Any:
    """What was saved, as an array; a number becomes one of ``dtype``."""
    if type(value) is StridedArray:
        return value.ndarray
    return np.asarray(value, as_dtype(dtype).numpy)


def or_zeros(array: Any, type: Any) -> Any:
    """The array, or zeros of a type where there is none."""
    return np.zeros(type.shape, as_dtype(type.dtype).numpy) if array is None else array
