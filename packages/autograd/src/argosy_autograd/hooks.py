"""Hooks: functions called on gradients as they pass, and on tensors that are kept for the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from itertools import count
from typing import Any
from weakref import ref

from argosy_autograd.errors import DifferentiationError
from argosy_phi_ops.context import AMBIENT, context
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "JointHook",
    "RemovableHandle",
    "has_saved_tensors_hooks",
    "pack_saved",
    "register_hook",
    "retain_grads",
    "saved_tensors_hooks",
    "unpack_saved",
]

Hook = Callable[..., Any]
_numbers = count()


class JointHook:
    """A hook of several leaves, which is called once in a backward pass, when all their gradients are known."""

    def __call__(self, leaves: Sequence[Tensor], gradients: Sequence[Tensor]) -> Sequence[Tensor | None]:
        """The gradients that take the places of these ones, which come in an order that depends on the program alone;
        None for a leaf that is to keep what it has."""
        raise NotImplementedError("a JointHook needs a method __call__(leaves, gradients)")

    def register(self, leaves: Iterable[Tensor]) -> None:
        """Be called with the gradients of ``leaves``."""
        for leaf in leaves:
            _table(leaf)[next(_numbers)] = self


class RemovableHandle:
    """What :func:`register_hook` returns: takes the hook off again."""

    def __init__(self, table: dict[int, Hook], number: int) -> None:
        self._table = table
        self._number = number

    def remove(self) -> bool:
        """Take the hook off; False when it was off already."""
        return self._table.pop(self._number, None) is not None


def register_hook(self: Tensor, hook: Hook) -> RemovableHandle:
    """Call ``hook`` with the gradient of the tensor in every backward pass; what it returns, unless None,
    replaces it.

    The hook of a leaf gets the sum of all that arrives in one pass. While capturing, a hook is traced once and
    cannot be removed, except from leaves. Raises :class:`DifferentiationError` for a tensor that wants no
    gradient.
    """
    if not callable(hook):
        raise TypeError(f"register_hook(): argument 'hook' must be a function, got {hook!r:.60}")
    if self.stop_gradient:
        raise DifferentiationError(f"{self.name} has stop_gradient=True: it has no gradient to hook")
    payload = self.payload
    if payload.is_traced and not any(x is self for x in payload.tracer.inputs):
        if import_module("argosy_autograd.tracing").traced_hook(self, hook):
            return RemovableHandle({}, -1)  # it is part of the program now
    number = next(_numbers)
    table = _table(self)
    table[number] = hook
    return RemovableHandle(table, number)


def _table(tensor: Tensor) -> dict[int, Hook]:
    node = tensor._node
    if node is None:
        if tensor._hooks is None:
            tensor._hooks = {}
        found: dict[int, Hook] = tensor._hooks
        return found
    if node.hooks is None:
        node.hooks = {}
    made: dict[int, Hook] = node.hooks.setdefault(tensor._slot, {})
    return made


def retain_grads(tensor: Tensor) -> None:
    """Keep the gradient of a tensor that is no leaf in its ``.grad``, too. Nothing changes for leaves and for tensors
    that want no gradient.
    """
    if tensor.payload.is_traced:
        raise NotImplementedError("retain_grads on a tensor that is being captured is not implemented; use grad()")
    node = tensor._node
    if node is not None and not tensor.stop_gradient:
        if node.retained is None:
            node.retained = {}
        node.retained[tensor._slot] = ref(tensor)


# What is kept for the backward pass

_KEY = "autograd.saved_tensors_hooks"
active = 0
"""How many blocks of :class:`saved_tensors_hooks` are entered, in all threads."""


class saved_tensors_hooks:
    """Within the block tensors kept for the backward pass go through ``pack``; what it returns is kept instead,
    and given to ``unpack`` when the backward pass needs the tensor: to compress, to keep elsewhere, to compute
    again."""

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        for name, hook in (("pack_hook", pack_hook), ("unpack_hook", unpack_hook)):
            if not callable(hook):
                raise TypeError(f"saved_tensors_hooks(): argument {name!r} must be a function, got {hook!r:.60}")
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> saved_tensors_hooks:
        global active
        active += 1
        AMBIENT.word += 1
        context().own_values.setdefault(_KEY, []).append(self)
        return self

    def __exit__(self, *error: object) -> None:
        global active
        active -= 1
        AMBIENT.word -= 1
        context().own_values[_KEY].pop()


def has_saved_tensors_hooks() -> bool:
    """Whether :class:`saved_tensors_hooks` are on here."""
    return bool(active and context().own_values.get(_KEY))


class _PackedPayload:
    __slots__ = ("array_type", "packed", "unpack")

    def __init__(self, packed: Any, unpack: Callable[[Any], Tensor], array_type: Any) -> None:
        self.packed = packed
        self.unpack = unpack
        self.array_type = array_type

    def unpack_payload(self) -> Any:
        """The payload of what the hook gives back, which must be like what was packed."""
        found = self.unpack(self.packed)
        if type(found) is not Tensor:
            raise TypeError(f"saved_tensors_hooks: unpack_hook should return a Tensor, got {type(found).__name__}")
        expected, got = self.array_type, getattr(found.payload, "array_type", None)
        if expected is not None and got is not None and (got.dtype, got.shape) != (expected.dtype, expected.shape):
            raise ValueError(
                f"saved_tensors_hooks: unpack_hook should return what was packed, "
                f"{_type_text(expected)}, got {_type_text(got)}"
            )
        return found.payload


def _type_text(array_type: Any) -> str:
    return f"{array_type.dtype.name} {list(array_type.shape)}"


def pack_saved(tensor: Tensor) -> tuple[_PackedPayload, None]:
    """What to keep for ``tensor`` by the innermost hooks."""
    hooks = context().own_values[_KEY][-1]
    array_type = getattr(tensor.payload, "array_type", None)
    return _PackedPayload(hooks.pack_hook(Tensor._wrap(tensor.payload)), hooks.unpack_hook, array_type), None


def unpack_saved(entry: Any) -> tuple[Any, Any]:
    """The payload (or number) and the version of what was kept."""
    value, version = entry
    if type(value) is _PackedPayload:
        return value.unpack_payload(), None
    return value, version
