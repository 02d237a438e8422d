"""Running static programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from argosy.argument_repr import ArgumentRepr
from argosy.jit import lowering
from argosy.jit.counting import note_compile
from argosy.jit.partitioned_program import lower_partitioned, makes_distributed
from argosy.static.program import Program, default_main_program
from argosy_autograd.modes import no_grad
from argosy_phi_ops.compiler import Executable
from argosy_phi_ops.eager.dispatch import suspend_layers
from argosy_pir.program import Program as Captured
from argosy_pir.types import TensorType
from argosy_tensorcore.casting import cast_exactly
from argosy_tensorcore.conversion import DataError
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["BuildStrategy", "CompiledProgram", "Executor"]


class BuildStrategy:
    """Wishes about compiling. The compiler fuses and reuses memory in any case, so that they change nothing."""

    class ReduceStrategy:
        """How gradients of several devices would be summed."""

        AllReduce = 0
        Reduce = 1

    reduce_strategy: int = ReduceStrategy.AllReduce
    build_cinn_pass: bool = False
    enable_addto: bool = False
    enable_inplace: bool = True
    fuse_all_optimizer_ops: bool = False
    fuse_all_reduce_ops: bool = True
    fuse_bn_act_ops: bool = False
    fuse_elewise_add_act_ops: bool = False
    fuse_gemm_epilogue: bool = False
    fuse_relu_depthwise_conv: bool = False
    memory_optimize: bool | None = None
    sync_batch_norm: bool = False


class CompiledProgram:
    """A program to be compiled as a whole, which every program is."""

    def __init__(self, program_or_graph: Program, build_strategy: BuildStrategy | None = None) -> None:
        if not isinstance(program_or_graph, Program):
            raise TypeError(f"CompiledProgram() takes a Program, not {type(program_or_graph).__name__}")
        self.program = program_or_graph
        self.build_strategy = build_strategy


class _CompiledProgram:
    """A program of certain outputs, compiled: its inputs by name, and the tensors that are its states."""

    def __init__(self, ended: Captured, tensors: Mapping[str, Tensor]) -> None:
        self.inputs = [(value.name_hint or "", value.type) for value in ended.inputs]
        self.states = [tensors[state.name] for state in ended.states]
        self.device = lowering.device_of(list(tensors.values()))
        self.executable: Executable
        if makes_distributed(ended):
            self.executable = lower_partitioned(ended, "CINN", self.device, None, None)
        else:
            self.executable = lowering.lower(ended, "CINN", self.device)
        self._bound: list[Any] = []
        self._run: Callable[[list[StridedArray]], list[StridedArray]] | None = None
        note_compile("static program")

    def __call__(self, feed: Mapping[str, Any]) -> list[StridedArray]:
        missing = [name for name, _ in self.inputs if name not in feed]
        if missing:
            raise ValueError(f"Executor.run: the program needs {missing}; feed has {sorted(feed)}")
        payloads = [x.payload for x in self.states]
        if self._run is None or any(a is not b for a, b in zip(payloads, self._bound, strict=True)):
            self._bound, self._run = payloads, self.executable.bind(payloads)
        arrays = [_feed(name, feed[name], type) for name, type in self.inputs]
        return self._run([StridedArray.from_array(array, self.device) for array in arrays])


class Executor(ArgumentRepr):
    """Runs programs where their parameters are, or, without any, where new tensors are made, whatever ``place`` is."""

    def __init__(self, place: Any = None) -> None:
        self.place = place

    def run(
        self,
        program: Program | CompiledProgram | None = None,
        feed: Any = None,
        fetch_list: Any = None,
        feed_var_name: str = "feed",
        fetch_var_name: str = "fetch",
        scope: object = None,
        return_numpy: bool = True,
        use_program_cache: bool = False,
        use_prune: bool = False,
    ) -> list[Any]:
        """Run ``program`` (by default the main one) once: fill the parameters that a startup program is for, compute,
        and update what training updates. It is compiled at the first run for what is fetched.

        feed: arrays or tensors by the names of ``data``; what is not needed may be missing. fetch_list: variables,
        parameters or names. Gives arrays, or tensors where ``return_numpy`` is False. Raises ValueError for what is
        missing in ``feed``, TypeError and ShapeError for what does not fit.
        """
        given = program.program if isinstance(program, CompiledProgram) else program or default_main_program()
        if not isinstance(given, Program):
            raise TypeError(f"Executor.run() takes a Program, not {type(given).__name__}")
        if isinstance(feed, (list, tuple)) and len(feed) == 1:
            feed = feed[0]  # of a DataLoader for one device
        if feed is not None and not isinstance(feed, Mapping):
            raise TypeError(f"Executor.run(): feed is a dict of name to array, not {type(feed).__name__}")
        wanted = [] if fetch_list is None else fetch_list if isinstance(fetch_list, (list, tuple)) else [fetch_list]
        values = [given.value_of(x) for x in wanted]
        key = (*values, None, *given.tracer.new_values(), given.frozen)
        with suspend_layers(), no_grad():
            for parameter, initializer in given.initial:
                initializer(parameter)
            compiled = given.executables.get(key)
            if compiled is None:
                ended = given.tracer.close_program(values, given.frozen)
                if not values and not ended.states:
                    return []
                compiled = given.executables[key] = _CompiledProgram(ended, given.tracer.tensors())
            made = compiled(feed or {})
        return [x.to_host() if return_numpy else Tensor._wrap(x) for x in made]

    def close(self) -> None:
        """Let go of nothing: programs hold what was compiled of them."""

    def flush(self) -> None:
        """Does nothing: runs are done when they return."""


def _feed(name: str, given: Any, type: Any) -> np.ndarray[Any, Any]:
    """The array that an input is fed; numbers of another precision are converted."""
    assert isinstance(type, TensorType)
    array = to_numpy(given) if isinstance(given, Tensor) else np.asarray(given)
    wanted = as_dtype(type.dtype).numpy
    if array.dtype != wanted:
        if not np.can_cast(array.dtype, wanted, "same_kind"):
            raise TypeError(f"Executor.run: {name!r} is {type.dtype}, it is fed {array.dtype}")
        try:
            array = cast_exactly(array, as_dtype(type.dtype))
        except DataError as error:
            raise ValueError(f"Executor.run: {name!r} {error}") from None
    fits = array.ndim == type.ndim and all(
        not isinstance(n, int) or n == m for n, m in zip(type.shape, array.shape, strict=True)
    )
    if not fits:
        sizes = [n if isinstance(n, int) else -1 for n in type.shape]
        raise ValueError(f"Executor.run: {name!r} has shape {sizes}, it is fed {list(array.shape)}")
    return np.ascontiguousarray(array) if array.ndim else array
