"""``auto_cast``: a layer of the dispatcher that converts the operands of operators by white and black lists.

The conversions are ordinary ``cast`` operators handed to the layers below: the gradient tape records them, a capture
writes them into its program, and gradients come back in the type of what was converted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import argosy.runtime  # noqa: F401  (operators come with the first tensor)
from argosy.amp.lists import BLACK, WHITE, checked_names
from argosy_phi_ops.context import context
from argosy_phi_ops.declare.operator import Operator, get_operator
from argosy_phi_ops.eager.dispatch import Interpreter, layer
from argosy_tensorcore.dtype import DType, as_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = ["AutoCast", "amp_state", "auto_cast", "current"]

_LEVELS = ("O0", "OD", "O1", "O2")
_KEPT = frozenset({"cast", "astype", "assign", "clone", "getitem", "setitem"})
_STATISTICS = frozenset({"batch_norm"})
"""Operators whose first operand decides: the others are parameters and running statistics, kept in float32."""

_FLOATS = ("float16", "bfloat16", "float32")
_KEY = "amp"
_ARGUMENTS = "arguments of amp"


class AutoCast(Interpreter):
    """The layer. ``key`` says what it does to operators, so that captures made under it can be told apart."""

    def __init__(
        self, level: str, dtype: DType, white: frozenset[str], black: frozenset[str], use_promote: bool = True
    ) -> None:
        self.dtype = dtype
        self.key = (level, dtype.name, white, black, use_promote)
        self._white = white
        self._black = black
        self._all = level == "O2" and not use_promote
        self._rest_wide = level == "OD"
        self._cast = get_operator("cast")
        self._wide = as_dtype("float32")

    def process(
        self, op: Operator, operands: Sequence[Any], attributes: dict[str, Any], below: Callable[..., Any]
    ) -> Any:
        """``op`` with its half and float32 operands converted to what its list asks for."""
        wanted = self._target_dtype(op, operands)
        if wanted is not None:
            operands = [self._convert(x, wanted, below) for x in operands]
        return below(op, operands, attributes)

    def _target_dtype(self, op: Operator, operands: Sequence[Any]) -> DType | None:
        name = op.name
        if name in _KEPT or op.random:
            return None
        if name in self._white:
            return self.dtype
        if name in self._black or self._rest_wide:
            return self._wide
        return self._common_dtype(name, operands)

    def _common_dtype(self, name: str, operands: Sequence[Any]) -> DType | None:
        """For operators on no list: the widest type among the operands; at O2 without promotion the half type."""
        kinds = {x.payload.dtype for x in operands if _is_float(x)}
        if name in _STATISTICS:
            return self._wide if len(kinds) > 1 else None
        if self._all and kinds:
            return self.dtype
        return self._wide if len(kinds) > 1 else None

    def _convert(self, x: Any, wanted: DType, below: Callable[..., Any]) -> Any:
        if not _is_float(x) or x.payload.dtype is wanted:
            return x
        return below(self._cast, (x,), {"dtype": wanted.name})


def _is_float(x: Any) -> bool:
    """Whether ``x`` is a tensor of a type that is converted; float64 is left alone, as in Paddle."""
    return type(x) is Tensor and x.payload.dtype.name in _FLOATS


def current() -> AutoCast | None:
    """The innermost active layer of this rank."""
    found: AutoCast | None = context().own_values.get(_KEY)
    return found


@contextmanager
def cast_operands(chosen: AutoCast | None) -> Iterator[None]:
    """Push ``chosen`` within the block (nothing for None) in place of any that is active."""
    values = context().own_values
    outer = values.get(_KEY)
    layers = context().layers
    hidden = [(at, held) for at, held in enumerate(layers) if isinstance(held, AutoCast)]
    for _, held in hidden:
        layers.remove(held)
    values[_KEY] = chosen
    try:
        if chosen is None:
            yield
        else:
            with layer(chosen):
                yield
    finally:
        values[_KEY] = outer
        for at, held in hidden:
            layers.insert(at, held)


@contextmanager
def auto_cast(
    enable: bool = True,
    custom_white_list: Iterable[str] | None = None,
    custom_black_list: Iterable[str] | None = None,
    level: str = "O1",
    dtype: object = "float16",
    use_promote: bool = True,
) -> Iterator[None]:
    """Run operators within the block in mixed precision, on the cpu as well.

    level: ``O0`` float32 throughout, ``OD`` white operators in ``dtype`` and all others in float32, ``O1`` by the white
    and the black list, others in the widest type of their operands; ``O2`` the same for a model converted by
    ``decorate``, and with ``use_promote=False`` everything that is not black in ``dtype``.
    dtype: ``"float16"`` or ``"bfloat16"``. Custom names win over the lists. Raises ValueError for other levels, types,
    names of no operator, and names on both custom lists.
    """
    given = dict(locals())
    chosen = _layer(custom_white_list, custom_black_list, level, dtype, use_promote) if enable else None
    values = context().own_values
    outer = values.get(_ARGUMENTS)
    values[_ARGUMENTS] = given
    try:
        with cast_operands(chosen):
            yield
    finally:
        values[_ARGUMENTS] = outer


def amp_state() -> dict[str, Any] | None:
    """The arguments of the innermost ``auto_cast``, be it enabled or not; None outside of all.

    As in Paddle, and models rely on it: T5 of PaddleNLP rounds to float16 within ``auto_cast(False)``, too.
    """
    found: dict[str, Any] | None = context().own_values.get(_ARGUMENTS)
    return found


def _layer(
    white: Iterable[str] | None, black: Iterable[str] | None, level: str, dtype: object, use_promote: bool
) -> AutoCast | None:
    if level not in _LEVELS:
        raise ValueError(f"auto_cast(level={level!r}): expected one of {list(_LEVELS)}")
    half = as_dtype(dtype)
    if half.name not in ("float16", "bfloat16"):
        raise ValueError(f"auto_cast(dtype={half.name!r}): expected 'float16' or 'bfloat16'")
    whites, blacks = checked_names("custom_white_list", white), checked_names("custom_black_list", black)
    if whites & blacks:
        raise ValueError(f"auto_cast(): {sorted(whites & blacks)} are on both custom lists")
    if level == "O0":
        return None
    return AutoCast(level, half, (WHITE | whites) - blacks, (BLACK | blacks) - whites, use_promote)
