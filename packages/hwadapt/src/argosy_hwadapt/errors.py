"""What can go wrong with a device or between ranks. Each class refines the builtin its reader would catch."""


class DeviceError(RuntimeError):
    """A device, its plug-in or its driver failed; the base of every error about devices."""


class DeviceNotFound(ValueError, LookupError, DeviceError):
    """No plug-in has this name, it has no device of this index, or it could not be loaded."""


class DeviceOutOfMemory(DeviceError, MemoryError):
    """The device has no room, also after cached blocks were released; it stays usable."""

    def __init__(self, message: str, requested: int = 0, free: int | None = None, total: int | None = None) -> None:
        super().__init__(message)
        #: Bytes asked for, free and in all; ``None`` where the device does not tell.
        self.requested, self.free, self.total = requested, free, total


class DeviceLost(DeviceError):
    """The device died: all its memory is gone and every further call fails at once."""


class KernelBuildError(DeviceError):
    """A kernel source did not build. ``log`` is the compiler's output."""

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(f"{message}\n{log}" if log else message)
        self.log = log


class LaunchError(DeviceError, ValueError):
    """A launch was refused before it reached the device: its shape or arguments do not fit."""


class AbiMismatch(DeviceError):
    """A plug-in speaks another major version of the device contract."""


class UnsupportedOperation(DeviceError, NotImplementedError):
    """The device does not offer this optional operation and no default can stand in."""


class CommunicatorError(RuntimeError):
    """Communication between ranks failed."""


class RankFailure(CommunicatorError):
    """Another rank of the group died, left early or aborted, so this operation can never complete."""


class CollectiveMismatch(CommunicatorError):
    """The ranks of a group called different collectives, or one with operands that differ."""
