"""The nine methods of the contract."""

import json

import numpy as np

from argosy_hwadapt.contract import ABI, DeviceInfo
from argosy_hwadapt.errors import DeviceOutOfMemory, KernelBuildError
from argosy_systolic.assembler import assemble
from argosy_systolic.vector_unit import execute

_BYTES = 8 << 30
_DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()


class SystolicRuntime:
    """Work is done when it is submitted; handles are arrays of bytes."""

    abi = ABI

    def devices(self):
        return [DeviceInfo("systolic array", "systolic-2", _BYTES, frozenset(_DTYPES), kernel_forms=("nest",))]

    def open(self, index):
        return self

    def alloc(self, ctx, nbytes):
        try:
            return np.zeros(nbytes, np.uint8)
        except (MemoryError, ValueError) as error:
            raise DeviceOutOfMemory(f"systolic: no room for {nbytes} bytes", nbytes) from error

    def free(self, ctx, handle):
        """Nothing: arrays free themselves."""

    def copy(self, ctx, dst, dst_off, src, src_off, nbytes, stream=None):
        to, source = (np.frombuffer(x, np.uint8) for x in (dst, src))
        to[dst_off : dst_off + nbytes] = source[src_off : src_off + nbytes]

    def synchronize(self, ctx, stream=None):
        """Nothing: all work is done."""

    def build(self, ctx, form, source, options):
        return assemble(source)

    def load(self, ctx, blob, entry):
        try:
            return json.loads(blob)[entry]
        except (ValueError, KeyError) as error:
            raise KernelBuildError(f"systolic: there is no kernel {entry!r}") from error

    def launch(self, ctx, kernel, grid, block, args, shared=0, stream=None):
        execute(kernel, [x.handle if x.handle is None else x.handle[x.offset :] for x in args])


def create(host_abi):
    return SystolicRuntime()
