"""Recording for gradients: the recorder, which autograd registers, and what tells it of applications.

Recording is a hook, not a layer: it comes after the kernel, where an operand wants gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy_phi_ops import extension
from argosy_phi_ops.context import AMBIENT, context
from argosy_phi_ops.eager.gradient_blockers import blockers_of, note_blockers, silence_blockers
from argosy_tensorcore.storage import ArrayType
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "Recorder", "active_recorder", "block_silently", "installed_recorder", "record_results", "recorder_for",
    "set_recorder",
]  # fmt: skip


class Recorder:
    """What a gradient recorder offers (autograd's tape installs one)."""

    def record(self, op: Any, operands: Sequence[Any], attributes: dict[str, Any], results: Sequence[Tensor]) -> None:
        """Note that ``results`` came from ``operands``; called only when some operand wants gradients."""
        raise NotImplementedError

    def rebind(self, target: Tensor, value: Tensor) -> None:
        """``target`` now holds ``value``: its history becomes that of ``value``."""
        raise NotImplementedError

    def record_application(self, application: Any, operands: Sequence[Any], result: Tensor) -> None:
        """Like :meth:`record`, also marking ``result`` as wanting gradients. What was worked out at the first
        recording may stay in the ``recipes`` of the :class:`~argosy_phi_ops.eager.application.Application`."""
        result.stop_gradient = False
        self.record(application.op, operands, application.attributes, (result,))

    def record_several(self, application: Any, operands: Sequence[Any], results: Sequence[Tensor]) -> None:
        """Like :meth:`record`, for several results, which are marked already; ``application`` has ``recipes``, too."""
        self.record(application.op, operands, application.attributes, results)


_recorder: Recorder | None = None


def set_recorder(recorder: Recorder | None) -> None:
    """Install autograd's recorder; None uninstalls it."""
    global _recorder
    _recorder = recorder


def installed_recorder() -> Recorder | None:
    """The recorder, where it has been loaded."""
    return _recorder


def active_recorder() -> Recorder | None:
    """The installed recorder, or the one that autograd registered, which is loaded now."""
    if _recorder is None and (source := extension.recorder_source()):
        set_recorder(extension.load(source))
    return _recorder


def record_results(op: Any, operands: Sequence[Any], attributes: dict[str, Any], results: Sequence[Tensor]) -> None:
    """Mark ``results`` as wanting gradients and hand the application to the recorder, where an operand wants them.

    For first applications, and for layers that compute results themselves.
    """
    blockers = blockers_of(operands)
    if blockers is not None:
        for result in results:
            result._gradient_blockers = blockers
    for x in operands:
        if type(x) is Tensor and not x.stop_gradient:
            break
    else:
        return
    if AMBIENT.word and not context().grad_enabled:
        for result in results:
            result._gradient_blockers = silence_blockers(blockers)
        return
    moving = [] if op.constant else [result for result in results if result.payload.dtype.kind in "fc"]
    for result in moving:
        result.stop_gradient = False
    if len(moving) < len(results):
        note_blockers(op, operands, results)
    recorder = _recorder or active_recorder()
    if moving and recorder is not None:
        recorder.record(op, operands, attributes, results)


def recorder_for(op: Any, types: Sequence[Any], result: ArrayType) -> Any:
    """What records an application of ``op`` to operands of ``types`` with one result: a function of the application,
    the operands and the result."""
    if op.constant or not result.differentiable:
        return _note_constant
    return _record_first if all(t.differentiable for t in types if type(t) is ArrayType) else _mix_record


def block_silently(application: Any, operands: Sequence[Any], result: Tensor) -> None:
    """A block that records nothing lets no gradient pass."""
    result._gradient_blockers = silence_blockers(result._gradient_blockers)


def _note_constant(application: Any, operands: Sequence[Any], result: Tensor) -> None:
    """Constants, and results that are no floating numbers, have no gradient."""
    if any([type(x) is Tensor and not x.stop_gradient and x.payload.array_type.differentiable for x in operands]):
        note_blockers(application.op, operands, (result,))


def _record_first(application: Any, operands: Sequence[Any], result: Tensor) -> None:
    """Find the recorder, which is loaded with the first tensor that wants gradients."""
    recorder = active_recorder()
    if recorder is None:
        _record_generally(application, operands, result)
    else:
        if application.record is _record_first:
            application.record = recorder.record_application
        recorder.record_application(application, operands, result)


def _mix_record(application: Any, operands: Sequence[Any], result: Tensor) -> None:
    """Some operands are integers, which have no gradient even where they are said to want one."""
    mixed = any([type(x) is Tensor and not (x.stop_gradient or x.payload.array_type.differentiable) for x in operands])
    (_record_generally if mixed else _record_first)(application, operands, result)


def _record_generally(application: Any, operands: Sequence[Any], result: Tensor) -> None:
    record_results(application.op, operands, application.attributes, (result,))
