"""Run a loaded program: named inputs in, arrays out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from argosy_hwadapt import Device
from argosy_infer.errors import InputError
from argosy_infer.export import LoadedProgram, load_program
from argosy_phi_ops.compiler import Executable, get_compiler
from argosy_pir.types import TensorType
from argosy_tensorcore.casting import cast_exactly
from argosy_tensorcore.conversion import DataError
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.place import Place, as_place
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.wait_notice import announce_wait

__all__ = ["SIZES", "Predictor"]

SIZES = "argosy.sizes"
"""The attribute of a program that says which open sizes its operators fix, and where."""

Array = np.ndarray[Any, Any]
_INVARIANT = "batch_invariant"


class Predictor:
    """A program bound to its weights and compiled, on the ``device`` of that name (or place, or opened one).

    ``source`` is a path as given to ``save_program`` or a :class:`LoadedProgram`; ``compiler`` a name (``"cinn"``,
    ``"reference"``), by default the best one installed. States that the program updates (caches) live on here between
    calls, in ``states`` by name. ``batch_invariant``: rows of products have the same bits whatever rows are
    beside them, where the compiler knows how.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | LoadedProgram,
        compiler: str | None = None,
        device: str | Place | Device | None = None,
        batch_invariant: bool = False,
    ) -> None:
        self.device = device if isinstance(device, Device) else as_place(device).device()
        loaded = source if isinstance(source, LoadedProgram) else load_program(source)
        self.program = loaded.program
        self.input_names = [x.name_hint or f"input_{i}" for i, x in enumerate(self.program.inputs)]
        self.output_names = [v.name_hint or f"output_{i}" for i, v in enumerate(self.program.outputs)]
        self.states = {s.name: StridedArray.from_array(loaded.states[s.name], self.device) for s in self.program.states}
        self._compiler = get_compiler(compiler)
        known = batch_invariant and _INVARIANT in getattr(self._compiler, "options", ())
        self._options: dict[str, Any] = {"options": {_INVARIANT: True}} if known else {}
        self.executable = self._compile(self.device)
        #: Runs the program on payloads of its inputs' types, unchecked: for callers that make them.
        self.call: Callable[[Sequence[StridedArray]], list[StridedArray]] = self.executable.bind(
            list(self.states.values())
        )

    def _compile(self, device: Device) -> Executable:
        with announce_wait(f"compiling {self.program.name!r}, {len(self.program.block)} operations"):
            return self._compiler.compile(self.program, device, **self._options)

    def move(self, device: Device, states: Mapping[str, StridedArray]) -> None:
        """Run on ``device`` from now on, with these ``states`` by name, which are there, in place of those before."""
        if device is not self.device:
            self.executable = self._compile(device)
        bound = {name: states[name] for name in self.states}
        self.call = self.executable.bind(list(bound.values()))
        self.device, self.states = device, bound

    def run(self, *arrays: Any, **named: Any) -> list[Array]:
        """The outputs for inputs given in order or by name.

        Raises :class:`InputError` for missing or unknown inputs, wrong ranks, sizes or dtypes. Integers convert to any
        dtype that holds their values, floats to other floats, rounded; values that do not fit are named.
        """
        given = self._gather(arrays, named)
        inputs = [
            StridedArray.from_array(self._fit(name, value, type), self.device)
            for (name, value), type in zip(given.items(), (x.type for x in self.program.inputs), strict=True)
        ]
        return [payload.to_host() for payload in self.call(inputs)]

    def _gather(self, arrays: Sequence[Any], named: dict[str, Any]) -> dict[str, Any]:
        if len(arrays) > len(self.input_names):
            raise InputError(f"the program takes {len(self.input_names)} inputs {self.input_names}, got {len(arrays)}")
        given = dict(zip(self.input_names, arrays, strict=False))
        twice, unknown = given.keys() & named.keys(), named.keys() - set(self.input_names)
        missing = [name for name in self.input_names if name not in given and name not in named]
        for what, names in (("given twice", twice), ("unknown", unknown), ("missing", missing)):
            if names:
                raise InputError(f"inputs {sorted(names)} are {what}; the program takes {self.input_names}")
        given.update(named)
        return {name: given[name] for name in self.input_names}

    def _reasons(self) -> str:
        """Why sizes that were left open by users are numbers here."""
        reasons = self.program.attributes.get(SIZES, ())
        return "".join(f"; {reason}" for reason in reasons) if isinstance(reasons, tuple) else ""

    def _fit(self, name: str, value: Any, type: Any) -> Array:
        assert isinstance(type, TensorType)
        try:
            array = cast_exactly(np.asarray(value), as_dtype(type.dtype))
        except DataError as error:
            raise InputError(f"input {name!r} {error}; expected {type}") from None
        except TypeError as error:  # no numbers at all
            raise InputError(f"input {name!r}: {error}; expected {type}") from None
        fits = array.ndim == len(type.shape) and all(
            not isinstance(n, int) or n == m for n, m in zip(type.shape, array.shape, strict=True)
        )
        if not fits:
            raise InputError(f"input {name!r} has shape {list(array.shape)}, expected {type}{self._reasons()}")
        return array
