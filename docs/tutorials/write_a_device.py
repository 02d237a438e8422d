# %% [markdown]
# # Write a device
#
# A device is an object with nine methods: list the devices, open one, allocate, free, copy, wait, build a kernel,
# load it, launch it. This page writes one in forty lines whose memory is Python's and whose kernels are numpy
# functions, and shows that the conformance kit can tell a right one from a wrong one.

# %%
import numpy as np

from argosy_hwadapt.contract import ABI, DeviceInfo
from argosy_hwadapt.device import Device
from argosy_hwadapt.errors import DeviceOutOfMemory

# %% [markdown]
# ## The nine methods
#
# Handles are opaque: nobody but the device looks at them. Here a handle is a key into a dictionary of byte arrays.


# %%
class NotebookChip:
    """A device in a notebook: memory is a dictionary, a kernel is a line of Python."""

    abi = ABI
    limit = 1 << 27

    def __init__(self):
        self.memory, self.next = {}, 0

    def devices(self):
        return [DeviceInfo("notebook chip", "python", self.limit, frozenset({"float32"}), kernel_forms=("python",))]

    def open(self, index):
        return self

    def alloc(self, ctx, nbytes):
        used = sum(block.size for block in self.memory.values())
        if used + nbytes > self.limit:
            raise DeviceOutOfMemory(
                f"notebook: {nbytes} bytes asked, {self.limit - used} free", nbytes, self.limit - used, self.limit
            )
        self.next += 1
        self.memory[self.next] = np.zeros(nbytes, np.uint8)
        return self.next

    def free(self, ctx, handle):
        del self.memory[handle]

    def copy(self, ctx, dst, dst_off, src, src_off, nbytes, stream=None):
        self._bytes(dst)[dst_off : dst_off + nbytes] = self._bytes(src)[src_off : src_off + nbytes].copy()

    def synchronize(self, ctx, stream=None):
        pass  # nothing is ever left to do

    def build(self, ctx, form, source, options):
        compile(source, "kernel", "exec")
        return source

    def load(self, ctx, blob, entry):
        names = {"np": np}
        exec(blob, names)
        return names[entry]

    def launch(self, ctx, kernel, grid, block, args, shared=0, stream=None):
        kernel(*[self._argument(argument) for argument in args])

    def _bytes(self, side):
        return self.memory[side] if isinstance(side, int) else np.frombuffer(side, np.uint8)

    def _argument(self, argument):
        handle = getattr(argument, "handle", None)
        return argument.value if handle is None else self.memory[handle][argument.offset :].view(np.float32)


# %% [markdown]
# ## Using it
#
# The layers above hold a `Device`, which adds checks, a caching allocator, and defaults for everything that the chip
# does not offer.

# %%
chip = NotebookChip()
opened = Device("notebook", 0, chip.devices()[0], chip)
numbers = np.arange(6, dtype=np.float32)
there = opened.allocate(numbers.nbytes)
result = opened.allocate(numbers.nbytes)
opened.copy(there, numbers)

blob = opened.build("python", b"def double(x, y):\n    y[:] = 2 * x\n")
opened.launch(opened.load(blob, "double"), grid=(1,), args=[there, result])

back = np.empty_like(numbers)
opened.copy(back, result)
opened.synchronize()
back, opened.memory_stats()

# %% [markdown]
# ## The kit
#
# `python -m argosy_hwadapt.testing NAME` checks a plug-in that is installed; here it is called as a function. It
# checks memory, order, kernels of the forms that it knows, optional groups and faults.

# %%
from argosy_hwadapt.testing import Subject, run_checks


def check(runtime):
    subject = Subject("notebook", runtime, Device("notebook", 0, runtime.devices()[0], runtime))
    for outcome in run_checks(subject, [0, 1]):
        print(f"{outcome.status:8}{outcome.name.replace('_', ' ')}  {outcome.detail}")


check(NotebookChip())

# %% [markdown]
# ## Offering it to others
#
# A package of yours names a function that makes the runtime in the entry-point group `argosy.devices`:
#
# ```toml
# [project.entry-points."argosy.devices"]
# notebook = "my_package:make_runtime"
# ```
#
# From then on `argosy devices --why` lists it, and says why not where it cannot be used.
#
# ## Mistakes that people make here


# %%
def attempt(call):
    """Print what a wrong call says."""
    try:
        call()
    except Exception as error:
        print(f"{type(error).__name__}: {error}\n")
    else:
        raise AssertionError("nothing was said")


class ForgetsOffsets(NotebookChip):
    """Copies to the beginning, wherever it was asked to."""

    def copy(self, ctx, dst, dst_off, src, src_off, nbytes, stream=None):
        super().copy(ctx, dst, 0, src, 0, nbytes)


# %%
check(ForgetsOffsets())  # the kit finds it

# %%
attempt(lambda: opened.allocate(1 << 30))  # more than there is

# %%
attempt(lambda: opened.copy(there, numbers, nbytes=1000))  # beyond the buffer

# %%
attempt(lambda: opened.build("ptx", b""))  # a form that it does not take
