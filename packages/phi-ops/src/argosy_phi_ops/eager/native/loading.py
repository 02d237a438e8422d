"""Deciding whether the native build is used, loading it and putting it in place; once in a process."""

from __future__ import annotations

import atexit
import ctypes
import itertools
import os
import sys
from collections.abc import Callable, Mapping
from threading import RLock
from typing import Any, Protocol

import numpy as np

from argosy_hwadapt.cpu.builtins import Definition
from argosy_hwadapt.cpu.c_bindings import open_shared_object, symbol_address
from argosy_hwadapt.cpu.features import cpu_arch, cpu_features
from argosy_hwadapt.fork import renew_in_child
from argosy_phi_ops import extension
from argosy_phi_ops.context import AMBIENT, Context, process_context
from argosy_phi_ops.declare.operator import Operator
from argosy_phi_ops.eager.native import memory
from argosy_phi_ops.eager.native.memory import NativeError, peek, poke
from argosy_phi_ops.eager.recording import active_recorder
from argosy_phi_ops.settings import EAGER
from argosy_phi_ops.user_line import warn_user
from argosy_tensorcore.dtype import DType
from argosy_tensorcore.rng import Generator
from argosy_tensorcore.storage import Storage, StridedArray
from argosy_tensorcore.tensor import Tensor, find_method

__all__ = ["Build", "NativeLibrary", "builtin", "is_running", "native_library", "status"]

_TESTED = ((3, 11), (3, 12), (3, 13))
"""Versions of CPython that the native build was tested on."""


class Build(Protocol):
    """What a provider makes: ``code`` is a shared object that exports ``exports``; its array ``state`` consists of
    the words named in ``state``, its array ``plans`` of so many addresses of records of ``plan_words``, which end with
    room for ``recipes``, for calls that read as ``words`` words with ``operands`` tensors at most. Compiled programs of
    up to ``table`` addresses can be run, with ``scratch`` bytes for intermediate values at the export of that name.
    Records of derivatives have ``back_words``, for ``gradients`` at most. ``method`` is the layout of methods;
    ``updates`` names the kernels of optimizers, with how many arrays each takes."""

    code: bytes
    exports: tuple[str, ...]
    state: tuple[str, ...]
    plans: int
    plan_words: tuple[str, ...]
    words: int
    operands: int
    recipes: int
    back_words: tuple[str, ...]
    gradients: int
    method: Mapping[str, int]
    updates: Mapping[str, int]
    scratch: int
    operators: tuple[str, ...]
    sizes: tuple[int, ...]
    table: int
    api: tuple[str, ...]
    dtypes: tuple[str, ...]


class NativeLibrary:
    """A loaded build. ``addresses`` are those of what it exports."""

    def __init__(self, build: Build, node: Any, counter: Any) -> None:
        self.build = build
        library = open_shared_object(build.code)
        keep(library)  # objects are freed by its code until the process ends
        self.addresses = {name: symbol_address(library, name) for name in build.exports}
        self.node = node
        objects = {
            "tensor": Tensor, "payload": StridedArray, "node": node, "storage": Storage, "ndarray": np.ndarray,
            "bytearray": bytearray, "true": True, "false": False, "none": None, "zero": 0, "one": 1, "empty": (),
            "tuple": tuple, "list": list, "slice": slice, "float": float, "int": int,
            "ambient": AMBIENT, "context": process_context, "counter": counter, "sequence": "sequence",
            "new_array": np.empty,
        }  # fmt: skip
        for name, value in objects.items():
            self.set_object(name, value)
        for name in build.api:
            function = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
            self.set_word(name, function or 0)
        self.kinds = {"tensor": Tensor, "payload": StridedArray} | ({} if node is None else {"node": node})
        for kind, cls in self.kinds.items():
            self.set_word(f"{kind}.dealloc", peek(memory.dealloc_of(cls)))

    def set_word(self, name: str, value: int) -> None:
        """Write a shared word."""
        poke(self.addresses["state"] + 8 * self.build.state.index(name), value)

    def set_object(self, name: str, value: Any) -> None:
        """Write a shared word that is an object, which then lives as long as the process."""
        keep(value)
        self.set_word(name, id(value))

    def install(self) -> None:
        """Let objects be freed by native code."""
        for kind, cls in self.kinds.items():
            poke(memory.dealloc_of(cls), self.addresses[f"free_{kind}"])

    def install_call(self) -> None:
        """Let calls of operators enter native code."""
        slot, entry = memory.call_of(Operator), self.addresses["enter_call"]
        if peek(slot) != entry:
            self.set_word("call", peek(slot))
            poke(slot, entry)

    def install_operator(self, op: Operator, methods: tuple[str, str]) -> None:
        """Let Python's operator on tensors enter native code; ``methods`` are what it calls for the rest."""
        name = op.name
        for method in methods:
            find_method(method)  # setting a method afterwards would put Python's own function back
        for word, method in zip(("method", "reflected"), methods, strict=True):
            self.set_object(f"{name}.{word}", vars(Tensor)[method])
        self.set_object(f"{name}.operator", op)
        poke(memory.number_slot(Tensor, name), self.addresses[f"enter_{name}"])

    def install_slot(self, name: str, slot: int, entry: str, op: Operator) -> None:
        """Let another slot of tensors enter native code, for applications of ``op``."""
        self.set_object(f"{name}.operator", op)
        if peek(slot) != self.addresses[entry]:
            shared = "compare0" if entry == "enter_compare" else name  # one slot for all comparisons
            self.set_word(f"{shared}.before", peek(slot))
            poke(slot, self.addresses[entry])

    def is_installed(self, name: str) -> bool:
        """Whether Python's operator enters native code now."""
        return peek(memory.number_slot(Tensor, name)) == self.addresses[f"enter_{name}"]

    def uninstall(self) -> None:
        """Free objects as Python does again."""
        for kind, cls in self.kinds.items():
            state = self.addresses["state"] + 8 * self.build.state.index(f"{kind}.dealloc")
            poke(memory.dealloc_of(cls), peek(state))

    def builtin(self, name: str) -> Callable[..., Any]:
        """An exported function that takes an array of arguments, as a builtin."""
        definition = Definition(name, self.addresses[name])
        keep(definition)
        return definition.builtin()

    def clear_plans(self) -> None:
        """Know nothing any more."""
        ctypes.memset(self.addresses["plans"], 0, 8 * self.build.plans)


def keep(value: Any) -> None:
    """Never free an object."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


_starting = renew_in_child(RLock())
_state: dict[str, Any] = {}
_STARTING = "plain: starting"


def _start_again() -> None:
    """In a child process: a thread that it does not have may have been starting the native build."""
    if _state.get("status") == _STARTING:
        _state.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_again)


def native_library() -> NativeLibrary | None:
    """The native build in use, started now if it was not; None where eager execution is plain, or nobody has said yet
    what provides it."""
    if "native" not in _state and extension.native_source() is not None:
        with _starting:
            if "native" not in _state:
                _state.update(native=None, status=_STARTING)  # what happens meanwhile is plain
                _state["native"], _state["status"] = _start()
    found: NativeLibrary | None = _state.get("native")
    return found


def is_running() -> bool:
    """Whether the native build has been started, and is in use."""
    return _state.get("native") is not None


def builtin(name: str) -> Callable[..., Any] | None:
    """A builtin of the native build; None where it does not run, or not yet."""
    found: NativeLibrary | None = _state.get("native")
    return None if found is None or found.node is None else found.builtin(name)


def status() -> str:
    """``"native"``, or ``"plain: "`` and the reason."""
    native_library()
    return str(_state.get("status") or f"plain: {_refusal() or 'nothing provides a native build'}")


def _start() -> tuple[NativeLibrary | None, str]:
    refusal = _refusal()
    if refusal:
        return None, f"plain: {refusal}"
    try:
        return _load(extension.load(str(extension.native_source()))), "native"
    except ImportError as error:
        return None, f"plain: {error}"
    except Exception as error:  # noqa: BLE001  (whatever it is, eager execution works without)
        warn_user(f"eager execution is not native here: {error}", RuntimeWarning)
        return None, f"plain: {error}"


def _refusal() -> str:
    """Why this process must do without; empty when nothing is against it."""
    if EAGER.read() == "plain":
        return "ARGOSY_EAGER=plain"
    if sys.implementation.name != "cpython" or sys.version_info[:2] not in _TESTED:
        return f"not tested on {sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}"
    if hasattr(sys, "gettotalrefcount") or sys.abiflags:
        return "the interpreter is a debug build"
    if sys.platform != "linux" or cpu_arch() != "x86_64" or "avx2" not in cpu_features():
        return f"no code for {cpu_arch()} on {sys.platform}"
    return ""


def _load(provider: Any) -> NativeLibrary:
    """Load, check and install. Raises NativeError and whatever the provider raises."""
    recorder = active_recorder()
    node, recipe = getattr(recorder, "node_type", None), getattr(recorder, "recipe_type", None)
    offsets: Mapping[str, int] = memory.offsets(
        Tensor, StridedArray, DType, Storage, type(AMBIENT), Context, Generator, node, recipe
    )
    made = NativeLibrary(provider(offsets), node, getattr(recorder, "counter", itertools.count()))
    made.install()
    try:
        _try(made)
    except BaseException:
        made.uninstall()
        raise
    atexit.register(made.clear_plans)  # what plans name goes away with the modules
    return made


def _try(made: NativeLibrary) -> None:
    """Free some objects of every kind."""
    for _ in range(3):
        for cls in made.kinds.values():
            object.__new__(cls)
        Tensor._wrap(StridedArray(np.zeros(2))).detach()  # a name for it would be missing in the row
    if peek(memory.dealloc_of(Tensor)) != made.addresses["free_tensor"]:
        raise NativeError("freeing a tensor left its class changed")
