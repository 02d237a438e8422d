"""Static programs and their variables: ``Program``, ``program_guard``, ``data``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

import argosy.runtime  # noqa: F401  (operators and the tape come with the first tensor)
from argosy.framework.random import seed
from argosy.jit.input_spec import InputSpec
from argosy.static.recorder import ProgramTracer
from argosy.static.session import current_programs, program_recording
from argosy_phi_ops.capture.live_tensors import live_tensors
from argosy_phi_ops.context import context
from argosy_pir import Operation, Value
from argosy_pir.types import TensorType
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "Block", "Program", "data", "default_main_program", "default_startup_program", "device_guard", "name_scope",
    "program_guard", "program_of",
]  # fmt: skip

_DEFAULT = "static.default"


class Program:
    """Operators to be run by ``Executor``: what is called on variables while the program is being built
    (``program_guard``, ``enable_static``) is recorded, not run.

    Parameters are tensors with values from the start; those made meanwhile are filled (anew) by running the startup
    program. ``parameters`` are they, ``initial`` the pairs of tensor and initializer that this one runs as a startup
    program.
    """

    def __init__(self) -> None:
        self.tracer = ProgramTracer()
        self.parameters: list[Tensor] = []
        self.initial: list[tuple[Tensor, Callable[[Tensor], Any]]] = []
        self.frozen = False
        """Whether running it leaves states as they are; see :meth:`clone`."""
        self.executables: dict[Any, Any] = {}
        self._named: dict[str, Tensor] = {}
        self._copies: dict[Value, Value] = {}
        self._originals: tuple[ProgramTracer, ...] = ()
        self._seed = 0

    # ---- what it holds

    @property
    def random_seed(self) -> int:
        """The seed given last; 0 where there was none. Setting one seeds the generator that programs draw from."""
        return self._seed

    @random_seed.setter
    def random_seed(self, value: int) -> None:
        if not isinstance(value, int):
            raise ValueError(f"Program.random_seed is an integer, not {value!r}")
        self._seed = value
        seed(value)

    def global_seed(self, seed: int = 0) -> None:
        """Set :attr:`random_seed`."""
        self.random_seed = seed

    @property
    def num_blocks(self) -> int:
        """Its blocks: 1. Branches and loops are regions of their operations."""
        return 1

    def global_block(self) -> Block:
        """Its operations and variables."""
        return Block(self)

    def block(self, index: int) -> Block:
        """:meth:`global_block`. Raises IndexError for another number than 0."""
        if index:
            raise IndexError(f"Program.block({index}): there is one block, 0")
        return Block(self)

    def current_block(self) -> Block:
        """:meth:`global_block`."""
        return Block(self)

    def all_parameters(self) -> list[Tensor]:
        """The parameters made while it was built, and others that it reads."""
        read = [x for x in self.tracer.tensors().values() if x.is_parameter]
        return list({id(x): x for x in (*self.parameters, *read)}.values())

    def persistables(self) -> dict[str, Tensor]:
        """Parameters, optimizers' states and global variables, by name."""
        read = [x for x in self.tracer.tensors().values() if x.persistable]
        return {x.name: x for x in (*self.all_parameters(), *read)}

    def list_vars(self) -> Iterator[Tensor]:
        """Its data, parameters and other tensors that it reads, and the variables that somebody holds."""
        found = (*self.tracer.inputs, *self.persistables().values(), *live_tensors(self.tracer))
        yield from {id(x): x for x in found}.values()

    def state_dict(self, mode: str = "all", scope: object = None) -> dict[str, Tensor]:
        """Its persistable tensors by name: "param", "opt" (what is no parameter) or "all"."""
        if mode not in ("all", "param", "opt"):
            raise ValueError(f"Program.state_dict: mode is 'all', 'param' or 'opt', got {mode!r}")
        wanted = {"all": (True, False), "param": (True,), "opt": (False,)}[mode]
        return {name: x for name, x in self.persistables().items() if x.is_parameter in wanted}

    def set_state_dict(self, state_dict: Mapping[str, Any], scope: object = None) -> None:
        """Give its tensors the values of these names. Raises ValueError for another shape."""
        held = self.persistables()
        for name in held.keys() & state_dict.keys():
            value = np.asarray(state_dict[name])
            if tuple(value.shape) != tuple(held[name].shape):
                raise ValueError(f"{name} has shape {list(held[name].shape)}, the state has {list(value.shape)}")
            held[name].set_value(value)

    # ---- copies

    def clone(self, for_test: bool = False) -> Program:
        """A copy of the program so far; its parameters are the same tensors, and variables of this one can be fetched
        from it.

        for_test: dropout and normalisations are those of evaluation, and running it changes no parameter or statistic.
        """
        made = Program()
        mapping: dict[Value, Value] = {}
        made.tracer = self.tracer.copy_onto(mapping)
        made._copies = {old: mapping[new] for old, new in self._copies.items()} | mapping
        made._originals = (self.tracer, *self._originals)
        made.parameters, made.initial = list(self.parameters), list(self.initial)
        made.frozen, made._seed = self.frozen or for_test, self._seed
        made._named = {x.name: x for x in made.tracer.inputs}
        if for_test:
            gone = made.tracer.evaluate()
            for old, new in made._copies.items():
                while new in gone:
                    new = gone[new]
                made._copies[old] = new
        return made

    @contextmanager
    def _optimized_guard(self, param_and_grads: object) -> Iterator[None]:
        """What optimizers record updates within: they need no marks here."""
        yield

    def name_variable(self, name: str, x: Tensor) -> None:
        """Let ``x`` be found by ``name``."""
        x.name = name
        self._named[name] = x

    def value_of(self, target: Any) -> Value:
        """The value that a variable, a tensor that it reads or the name of one has when the program ends.

        Raises ValueError for what the program does not have.
        """
        if isinstance(target, str):
            return self._name_value(target)
        if type(target) is not Tensor:
            raise TypeError(f"a program has variables and names of them, not {target!r:.80}")
        payload = target.payload
        if not payload.is_traced or payload.tracer is self.tracer:
            return self.tracer.value(target)
        if payload.value not in self._copies:
            raise ValueError(f"variable {target.name} belongs to another program")
        return self._copies[payload.value]

    def _name_value(self, name: str) -> Value:
        known = self._named.get(name, self.persistables().get(name))
        if known is None:
            held = [x for tracer in (self.tracer, *self._originals) for x in live_tensors(tracer)]
            known = next((x for x in held if x._name == name), None)
        if known is None:
            raise ValueError(f"the program has no variable {name!r} that is still held; fetch the variable itself")
        return self.value_of(known)

    def __str__(self) -> str:
        return str(self.tracer.close_program([], frozen=False))

    def __repr__(self) -> str:
        operations = len(list(self.tracer.program.block))
        return f"<Program: {operations} operations, {len(self.parameters)} parameters>"

    def _repr_html_(self) -> str:
        return self.tracer.close_program([], frozen=False)._repr_html_()


class Block:
    """The operations and variables of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program

    @property
    def ops(self) -> list[Operation]:
        """The operations recorded so far."""
        return list(self.program.tracer.program.block)

    @property
    def vars(self) -> dict[str, Tensor]:
        """What :meth:`Program.list_vars` gives, by name."""
        return {x.name: x for x in self.program.list_vars()}

    def var(self, name: str) -> Tensor:
        """The variable of that name. Raises ValueError where there is none."""
        found = self.vars.get(name)
        if found is None:
            raise ValueError(f"var {name} not in this block")
        return found

    def create_var(
        self, name: str | None = None, dtype: Any = "float32", shape: Any = (), **settings: Any
    ) -> InputSpec:
        """What a variable to come is like, for ``py_func``."""
        return InputSpec([n if isinstance(n, int) else None for n in shape], dtype, name)

    def has_var(self, name: str) -> bool:
        """Whether there is a variable of that name."""
        return name in self.vars

    def all_parameters(self) -> list[Tensor]:
        """The program's parameters."""
        return self.program.all_parameters()


def program_of(x: Tensor) -> Program | None:
    """The program being built, where ``x`` is a variable of it."""
    programs = current_programs()
    tracer = x.payload.tracer if x.payload.is_traced else None
    return programs[0] if programs is not None and programs[0].tracer is tracer else None


def _defaults() -> tuple[Program, Program]:
    made: tuple[Program, Program] = context().values.setdefault(_DEFAULT, (Program(), Program()))
    return made


def default_main_program() -> Program:
    """The program that operators are recorded into: that of the innermost ``program_guard``, else this rank's own."""
    return (current_programs() or _defaults())[0]


def default_startup_program() -> Program:
    """The startup program of :func:`default_main_program`."""
    return (current_programs() or _defaults())[1]


def program_guard(main_program: Program, startup_program: Program | None = None) -> AbstractContextManager[None]:
    """Record into ``main_program`` within the block; parameters' beginnings into ``startup_program``."""
    for argument, given in (("main_program", main_program), ("startup_program", startup_program)):
        if not isinstance(given, Program) and (given is not None or argument == "main_program"):
            raise TypeError(f"program_guard(): {argument} is a Program, not {type(given).__name__}")
    return program_recording(main_program, startup_program or default_startup_program())


def data(name: str, shape: Sequence[int | None], dtype: Any = None, lod_level: int = 0) -> Tensor:
    """A variable whose value ``Executor.run`` is fed under ``name``; sizes of None or -1 are those of what it is fed.

    dtype: by default float32. Raises RuntimeError where no program is being built, ValueError for a name that is
    taken by another variable.
    """
    programs = current_programs()
    if programs is None:
        raise RuntimeError("static.data() is part of a program: call paddle.enable_static() or use program_guard first")
    if not isinstance(name, str):
        raise TypeError(f"static.data(): name is a string, not {type(name).__name__}")
    program = programs[0]
    sizes = [-1 if n is None else int(n) for n in shape]
    if any(n < -1 for n in sizes):
        raise ValueError(f"static.data(): sizes are at least 0, or None, got {list(shape)}")
    known = next((x for x in program.tracer.inputs if x.name == name), None)
    if known is not None:
        raise ValueError(f"static.data(): the program has a variable {name!r} of shape {list(known.shape)} already")
    given = [program.tracer.open_size() if n == -1 else n for n in sizes]
    made = program.tracer.input(TensorType(tuple(given), as_dtype(dtype or "float32").name), name)
    program.name_variable(name, made)
    return made


@contextmanager
def name_scope(prefix: str | None = None) -> Iterator[None]:
    """Names within the block are for readers of a drawing of the program; here they change nothing."""
    yield


@contextmanager
def device_guard(device: str | None = None) -> Iterator[None]:
    """Where operators within the block run: the cpu. Raises ValueError for what is neither it nor a gpu or xpu."""
    kind = (device or "cpu").partition(":")[0]
    if kind not in ("cpu", "gpu", "xpu", ""):
        raise ValueError(f"device_guard(): device is 'cpu', 'gpu[:n]' or 'xpu[:n]', got {device!r}")
    yield
