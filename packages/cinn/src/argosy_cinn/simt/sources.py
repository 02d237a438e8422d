"""Sources of kernels by the form that a device takes: OpenCL C, scheduled for work-groups, or the canonical text of
forms, which the device schedules itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from argosy_cinn.forms.form import Form
from argosy_cinn.forms.text import header, print_form
from argosy_cinn.kinds import emitter_of
from argosy_cinn.printers.opencl import HEAD, Kernel, SimtTarget, UnprintableError
from argosy_cinn.target import Target
from argosy_hwadapt import DeviceInfo
from argosy_phi_ops.errors import CompileError


class Source(Protocol):
    """How kernels are written in a form: what all of them begin with, for which target, and whether they take sizes."""

    form: str
    head: str
    target: Target
    takes_sizes: bool

    def print(self, name: str, form: Form) -> tuple[str, str, Sequence[Any], Sequence[Any]]:
        """Text by which equal kernels are found, that of the kernel, its buffers, and the sizes that it takes. Raises
        `CompileError`, or `NotSymbolic` for what is printed for known sizes."""

    def extents(self, form: Form) -> tuple[int, int]:
        """Groups, and work-items of each."""

    def completions(self, form: Form) -> Sequence[Form]:
        """What has to complete its results."""


class OpenClSource:
    """Kernels in OpenCL C."""

    form, head, takes_sizes = "opencl-c", HEAD, True

    def __init__(self, info: DeviceInfo) -> None:
        self.target: Target = SimtTarget(lanes=4 if info.simt_width > 1 else 16)

    def print(self, name: str, form: Form) -> tuple[str, str, Sequence[Any], Sequence[Any]]:
        """See :class:`Source`."""
        slots: dict[Any, int] = {}
        key = form.key(slots)
        kernel = Kernel(name, self.target, len(slots))
        try:
            self._emitter(form).emit(kernel, form, slots)
        except UnprintableError as error:
            raise CompileError(str(error)) from error
        return key, kernel.text(), list(slots), list(kernel.sizes)

    def extents(self, form: Form) -> tuple[int, int]:
        """See :class:`Source`."""
        found: tuple[int, int] = self._emitter(form).extents(form, self.target)
        return found

    def completions(self, form: Form) -> Sequence[Form]:
        """See :class:`Source`."""
        return form.completion_forms()

    def _emitter(self, form: Form) -> Any:
        return emitter_of(form.kind, self.target.schedules)


class TextTarget(SimtTarget):
    """Machines that schedule forms themselves."""

    __slots__ = ()
    schedules = "text"


class NestSource:
    """Kernels as canonical text of forms; a launch has one group of one work-item."""

    form, head, takes_sizes = "nest", "", False

    def __init__(self, info: DeviceInfo) -> None:
        self.target: Target = TextTarget()

    def print(self, name: str, form: Form) -> tuple[str, str, Sequence[Any], Sequence[Any]]:
        """See :class:`Source`."""
        text, buffers = print_form(form)
        head = header("", buffers)
        return f"{head}\n{text}", f"{header(name, buffers)}\n{text}\n", buffers, ()

    def extents(self, form: Form) -> tuple[int, int]:
        """See :class:`Source`."""
        return 1, 1

    def completions(self, form: Form) -> Sequence[Form]:
        """See :class:`Source`."""
        return ()


class TextEmitter:
    """What stands in `argosy_cinn.kinds` for kinds of forms that have text."""

    def schedule(self, form: Form, target: Target) -> None:
        """Choose nothing."""


EMITTER = TextEmitter()
"""For `argosy_cinn.kinds`."""
SOURCES = {source.form: source for source in (OpenClSource, NestSource)}
