"""Sources of kernels by the form that a device takes: OpenCL C or SPIR-V, scheduled for work-groups, or the canonical
text of forms, which the device schedules itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from argosy_cinn.forms.form import Form
from argosy_cinn.forms.text import header, print_form
from argosy_cinn.kinds import emitter_of
from argosy_cinn.printers.opencl import HEAD, Kernel
from argosy_cinn.printers.spirv import SpirvKernel, spirv_module
from argosy_cinn.printers.work_groups import SimtTarget, UnprintableError, WorkGroupInstructions
from argosy_cinn.runtime.jit import CodegenError
from argosy_cinn.runtime.spirv import compile_spirv
from argosy_cinn.settings import KERNEL_FORM
from argosy_cinn.target import Target
from argosy_hwadapt import DeviceInfo
from argosy_hwadapt.contract import MATRIX_TILES, SUB_GROUPS
from argosy_phi_ops.errors import CompileError

#: Items of a group on machines that run many in step: four or eight of their vectors.
_GROUP_ITEMS = 256


class Source(Protocol):
    """How kernels are written in a form: what all of them begin with, for which target, and whether they take sizes."""

    form: str
    head: str
    target: Target
    takes_sizes: bool

    def image(self, text: str) -> bytes:
        """What a device builds of a text that begins with the head and has kernels, one after the other."""

    def print(self, name: str, form: Form) -> tuple[str, str, Sequence[Any], Sequence[Any]]:
        """Text by which equal kernels are found, that of the kernel, its buffers, and the sizes that it takes. Raises
        `CompileError`, or `NotSymbolic` for what is printed for known sizes."""

    def extents(self, form: Form) -> tuple[int, int]:
        """Groups, and work-items of each."""

    def serves(self, form: Form, sizes: Mapping[str, int]) -> bool:
        """Whether its kernel for all sizes gives the bits of one for these."""

    def completions(self, form: Form) -> Sequence[Form]:
        """What has to complete its results."""


def target_of(info: DeviceInfo) -> SimtTarget:
    """The machine that a device is: a processor of this host, whose items are its threads, or many items in step."""
    if info.simt_width == 1:
        host = Target.host()
        return SimtTarget(16, l3_bytes=host.l3_bytes, registers=host.registers * host.vector_bits // 512)
    shuffles = SUB_GROUPS in info.flags
    tiles = MATRIX_TILES in info.flags
    size = info.simt_width if shuffles or tiles else 1
    return SimtTarget(4, min(info.max_block, _GROUP_ITEMS), size, shuffles, tiles)


class OpenClSource:
    """Kernels in OpenCL C."""

    form, head, takes_sizes = "opencl-c", HEAD, True
    kernel: type[WorkGroupInstructions] = Kernel

    def __init__(self, info: DeviceInfo) -> None:
        self.target: Target = target_of(info)

    def print(self, name: str, form: Form) -> tuple[str, str, Sequence[Any], Sequence[Any]]:
        """See :class:`Source`."""
        slots: dict[Any, int] = {}
        key = form.key(slots)
        kernel = self.kernel(name, self.target, len(slots))
        try:
            self._emitter(form).emit(kernel, form, slots)
        except UnprintableError as error:
            raise CompileError(str(error)) from error
        return key, kernel.text(), list(slots), list(kernel.sizes)

    def extents(self, form: Form) -> tuple[int, int]:
        """See :class:`Source`."""
        found: tuple[int, int] = self._emitter(form).extents(form, self.target)
        return found

    def serves(self, form: Form, sizes: Mapping[str, int]) -> bool:
        """See :class:`Source`."""
        return bool(self._emitter(form).serves(form, self.target, sizes))

    def completions(self, form: Form) -> Sequence[Form]:
        """See :class:`Source`."""
        return form.completion_forms()

    def image(self, text: str) -> bytes:
        """See :class:`Source`."""
        return text.encode()

    def _emitter(self, form: Form) -> Any:
        return emitter_of(form.kind, self.target.schedules)


class SpirvSource(OpenClSource):
    """The same schedules in SPIR-V, whose text is LLVM's."""

    form, head, kernel = "spirv", "", SpirvKernel

    def image(self, text: str) -> bytes:
        """See :class:`Source`. Raises `CompileError` for what LLVM has no SPIR-V for."""
        try:
            return compile_spirv(spirv_module(text))
        except CodegenError as error:
            raise CompileError(str(error)) from error


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

    def serves(self, form: Form, sizes: Mapping[str, int]) -> bool:
        """See :class:`Source`."""
        return True

    def completions(self, form: Form) -> Sequence[Form]:
        """See :class:`Source`."""
        return ()

    def image(self, text: str) -> bytes:
        """See :class:`Source`."""
        return text.encode()


class TextEmitter:
    """What stands in `argosy_cinn.kinds` for kinds of forms that have text."""

    def schedule(self, form: Form, target: Target) -> None:
        """Choose nothing."""


EMITTER = TextEmitter()
"""For `argosy_cinn.kinds`."""
SOURCES: Mapping[str, Callable[[DeviceInfo], Source]] = {
    source.form: source for source in (SpirvSource, OpenClSource, NestSource)
}


def source_for(info: DeviceInfo, options: Mapping[str, Any]) -> Source:
    """The source of kernels in the form that is asked for, where the device takes it, or that it prefers; OpenCL C for
    one that runs no kernels of these forms."""
    chosen = KERNEL_FORM.resolve(options)
    preferred = [chosen, *info.kernel_forms] if chosen in info.kernel_forms else info.kernel_forms
    return SOURCES[next((form for form in preferred if form in SOURCES), "opencl-c")](info)
