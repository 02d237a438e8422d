"""Looking for NaN and infinity, and counting the types that operators compute in."""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any

import numpy as np

import argosy.runtime  # noqa: F401  (operators come with the first tensor)
from argosy.amp.records import Record, compare, record_of
from argosy.argument_checks import validate_call
from argosy.distributed.environment import get_rank, get_world_size
from argosy_phi_ops.context import AMBIENT, context
from argosy_phi_ops.declare.operator import Operator
from argosy_phi_ops.eager.dispatch import Interpreter
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "DebugMode", "TensorCheckerConfig", "check_layer_numerics", "check_numerics", "collect_operator_stats",
    "compare_accuracy", "disable_operator_stats_collection", "disable_tensor_checker",
    "enable_operator_stats_collection", "enable_tensor_checker",
]  # fmt: skip


class DebugMode(Enum):
    """What the checker tells of: NaN and infinity, stopping there or not, what float16 could not hold, everything."""

    CHECK_NAN_INF_AND_ABORT = 0
    CHECK_NAN_INF = 1
    CHECK_ALL_FOR_OVERFLOW = 2
    CHECK_ALL = 3


@validate_call
def check_numerics(
    tensor: Tensor, op_type: str, var_name: str, debug_mode: DebugMode = DebugMode.CHECK_NAN_INF_AND_ABORT
) -> tuple[Tensor, Tensor]:
    """Count what is not finite: (int64 [NaN, infinite, zero], float32 [max, min, mean]; the extrema leave NaN out).

    Prints the figures where there is NaN or infinity, or where ``debug_mode`` says so, and raises RuntimeError for NaN
    or infinity with ``CHECK_NAN_INF_AND_ABORT``.
    """
    found = record_of(op_type, tensor.dtype.name, np.asarray(tensor.astype("float64").numpy()), var_name)
    if _tells(found, debug_mode):
        print(found.line())  # noqa: T201  (what the user asked for)
    if found.has_nonfinite and debug_mode is DebugMode.CHECK_NAN_INF_AND_ABORT:
        _stop(op_type, var_name, found.num_nan, found.num_inf)
    counts = np.array([found.num_nan, found.num_inf, found.num_zero], np.int64)
    return Tensor(counts), Tensor(np.array([found.max, found.min, found.mean], np.float32))


def _tells(found: Record, mode: DebugMode) -> bool:
    """Whether ``mode`` has something to tell of the record."""
    if mode is DebugMode.CHECK_ALL_FOR_OVERFLOW:
        return found.overflows
    return found.has_nonfinite or mode is DebugMode.CHECK_ALL


def _stop(op_type: str, var_name: str, nan: int, infinite: int) -> None:
    raise RuntimeError(f"{op_type}: {var_name} holds {nan} NaN and {infinite} infinite elements")


class TensorCheckerConfig:
    """What :func:`enable_tensor_checker` checks: which operators, and from which step to which.

    checked_op_list, skipped_op_list: names of operators, all and none by default; debug_step: (first, one past the
    last) of the steps that :meth:`update_and_check_step_id` counts; output_dir: a folder, made where it is missing,
    whose file ``worker_cpu`` (of a rank of several ``worker_cpu.<rank>``) gets the lines that are printed otherwise.
    """

    @validate_call
    def __init__(
        self,
        enable: bool,
        debug_mode: DebugMode = DebugMode.CHECK_NAN_INF_AND_ABORT,
        output_dir: str | None = None,
        checked_op_list: Sequence[str] | None = None,
        skipped_op_list: Sequence[str] | None = None,
        debug_step: Sequence[int] | None = None,
        stack_height_limit: int = 1,
    ) -> None:
        if not isinstance(debug_mode, DebugMode):
            raise ValueError(f"TensorCheckerConfig: debug_mode should be a DebugMode, got {debug_mode!r}")
        if debug_step is not None and (len(debug_step) != 2 or debug_step[0] >= debug_step[1]):
            raise ValueError(f"TensorCheckerConfig: debug_step is (first, one past the last), got {debug_step}")
        self.enable, self.debug_mode, self.debug_step = enable, debug_mode, debug_step
        self.output_dir = output_dir
        self.checked_op_list = None if checked_op_list is None else frozenset(checked_op_list)
        self.skipped_op_list = frozenset(skipped_op_list or ())
        self.stack_height_limit = stack_height_limit
        self.initial_seed = random.randrange(2**31)
        self.current_step_id = 0

    def update_and_check_step_id(self) -> bool:
        """Count a step; whether it is to be checked."""
        step, self.current_step_id = self.current_step_id, self.current_step_id + 1
        wanted = self.debug_step is None or self.debug_step[0] <= step < self.debug_step[1]
        return self.enable and wanted

    def start_check_nan_inf(self) -> None:
        """Check every operator from now on."""
        _remove(_Checker)
        _push(_Checker(self))

    def stop_check_nan_inf(self) -> None:
        """Check no more."""
        _remove(_Checker)


class _Checker(Interpreter):
    """The layer of the dispatcher that looks at every result."""

    def __init__(self, config: TensorCheckerConfig) -> None:
        self.config = config

    def process(
        self, op: Operator, operands: Sequence[Any], attributes: dict[str, Any], below: Callable[..., Any]
    ) -> Any:
        """``op``, then a look at its results."""
        made = below(op, operands, attributes)
        only, without = self.config.checked_op_list, self.config.skipped_op_list
        if (only is None or op.name in only) and op.name not in without:
            for i, result in enumerate(made if isinstance(made, (tuple, list)) else [made]):
                self._check(op.name, i, result)
        return made

    def _check(self, name: str, index: int, result: Tensor) -> None:
        if result.payload.is_traced or result.dtype.kind not in "fc" or not result.dtype.in_numpy:
            return
        array, mode = result.numpy(), self.config.debug_mode
        if mode is DebugMode.CHECK_NAN_INF_AND_ABORT:
            if not np.isfinite(array).all():
                _stop(name, f"result {index}", int(np.isnan(array).sum()), int(np.isinf(array).sum()))
            return
        for part in (array.real, array.imag) if result.dtype.kind == "c" else (array,):
            record = record_of(name, result.dtype.name, part)
            if _tells(record, mode):
                self._tell(record.line())

    def _tell(self, line: str) -> None:
        if self.config.output_dir is None:
            print(line)  # noqa: T201  (what the user asked for)
            return
        os.makedirs(self.config.output_dir, exist_ok=True)
        name = "worker_cpu" if get_world_size() == 1 else f"worker_cpu.{get_rank()}"
        with open(os.path.join(self.config.output_dir, name), "a", encoding="utf-8") as file:
            file.write(line + "\n")


@validate_call
def enable_tensor_checker(checker_config: TensorCheckerConfig) -> None:
    """Check the results of operators as ``checker_config`` says, when this step is among those to be checked."""
    if checker_config.update_and_check_step_id():
        checker_config.start_check_nan_inf()
    else:
        checker_config.stop_check_nan_inf()


def disable_tensor_checker() -> None:
    """Check no more."""
    _remove(_Checker)


class _Counter(Interpreter):
    """The layer of the dispatcher that counts calls: operator -> type of its first float result -> calls."""

    def __init__(self) -> None:
        self.calls: dict[str, dict[str, int]] = {}

    def process(
        self, op: Operator, operands: Sequence[Any], attributes: dict[str, Any], below: Callable[..., Any]
    ) -> Any:
        """``op``, counted."""
        made = below(op, operands, attributes)
        results = made if isinstance(made, (tuple, list)) else [made]
        kinds = [r.dtype.name for r in results if r.dtype.kind == "f"]
        counts = self.calls.setdefault(op.name, {})
        kind = kinds[0] if kinds and kinds[0] in _COLUMNS else "other"
        counts[kind] = counts.get(kind, 0) + 1
        return made


_COLUMNS = ("float16", "bfloat16", "float32")
_HEADS = (" Op Name ", " FP16 Calls ", " BF16 Calls ", " FP32 Calls", " Other Calls ")


def enable_operator_stats_collection() -> None:
    """Count from now on in which types operators compute."""
    _remove(_Counter)
    _push(_Counter())


def disable_operator_stats_collection() -> None:
    """Stop counting, and print the table."""
    counter = _remove(_Counter)
    if isinstance(counter, _Counter):
        print(_table(counter.calls))  # noqa: T201  (what the user asked for)


def _table(calls: dict[str, dict[str, int]]) -> str:
    heads = [f"{text:-^{width}}" for text, width in zip(_HEADS, (40, 17, 17, 17, 17), strict=True)]
    rows = [(name, *(found.get(kind, 0) for kind in (*_COLUMNS, "other"))) for name, found in sorted(calls.items())]
    lines = ["  " + "|  ".join(f"{x:<{w}}" for x, w in zip(row, (40, 17, 17, 17, 17), strict=True)) for row in rows]
    ends = (f"<{text:-^120}>" for text in (" op list ", f" op count: {len(rows)} "))
    return "\n".join([next(ends), f"<{' | '.join(heads)}>", *lines, next(ends), ""])


@contextmanager
def collect_operator_stats() -> Iterator[None]:
    """Count within the block in which types operators compute, and print the table at its end."""
    enable_operator_stats_collection()
    try:
        yield
    finally:
        disable_operator_stats_collection()


def _push(interpreter: Interpreter) -> None:
    context().layers.append(interpreter)
    AMBIENT.word += 1


def _remove(kind: type[Interpreter]) -> Interpreter | None:
    """Take the layer of that kind off the stack, if there is one."""
    layers = context().layers
    found = next((held for held in layers if isinstance(held, kind)), None)
    if found is not None:
        layers.remove(found)
        AMBIENT.word -= 1
    return found


def check_layer_numerics(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a layer's ``forward``: NaN or infinity in its first argument or in what it returns is an error."""

    @functools.wraps(func)
    def check_and_call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not args:
            raise RuntimeError(f"check_layer_numerics: {type(self).__name__}.forward() got no inputs")
        name = type(self).__name__
        _look(name, "input", args[:1])
        made = func(self, *args, **kwargs)
        _look(name, "output", made if isinstance(made, (tuple, list)) else [made])
        return made

    return check_and_call


def _look(layer: str, what: str, values: Sequence[Any]) -> None:
    for i, value in enumerate(values):
        if isinstance(value, Tensor) and value.dtype.kind == "f":
            check_numerics(value, layer, f"{what} {i}")


def compare_accuracy(
    dump_path: str, another_dump_path: str, output_filename: str, loss_scale: float = 1, dump_all_tensors: bool = False
) -> None:
    """Two runs' logs of tensors side by side, as a file of comma-separated values: say one of float32 and one of half
    precision, each written with ``TensorCheckerConfig(debug_mode=DebugMode.CHECK_ALL, output_dir=dump_path)``.

    A row is the n-th result of an operator in both, with figures, their ratios, and whether it is ``normal``: float16
    holds it, and the extrema agree to 1 % (for gradients also when the second are ``loss_scale`` times as large).
    Raises ValueError for folders without logs, for a name of a spreadsheet, and for ``dump_all_tensors``, which Paddle
    does not have either.
    """
    if dump_all_tensors:
        raise ValueError(
            "compare_accuracy: argument 'dump_all_tensors' must be False: there are figures of tensors only"
        )
    if os.path.splitext(output_filename)[1] in (".xls", ".xlsx"):
        raise ValueError(f"compare_accuracy: argument 'output_filename' should end in .csv, got {output_filename!r}")
    compare(dump_path, another_dump_path, output_filename, loss_scale)
