"""Level 0: what can be said of a plug-in before and while it is opened."""

from argosy_hwadapt.contract import ABI, DeviceInfo
from argosy_hwadapt.device import Device
from argosy_hwadapt.errors import DeviceNotFound
from argosy_hwadapt.registry import check_abi, device
from argosy_hwadapt.testing.ablation import REQUIRED
from argosy_hwadapt.testing.suite import Subject, check, require, require_error


@check(0)
def states_its_contract(subject: Subject) -> None:
    """The plug-in states a version of the contract that this framework accepts."""
    abi = subject.runtime.abi
    require(isinstance(abi, tuple) and len(abi) == 2, f"abi must be (major, minor), got {abi!r}")
    check_abi(subject.name, subject.name, abi)


@check(0)
def has_the_required_methods(subject: Subject) -> None:
    """All nine methods are there."""
    missing = [name for name in REQUIRED if not callable(getattr(subject.runtime, name, None))]
    require(not missing, f"missing: {', '.join(missing)}")


@check(0)
def describes_its_devices(subject: Subject) -> None:
    """Each device is described by plausible values, the same each time."""
    infos = list(subject.runtime.devices())
    require(infos == list(subject.runtime.devices()), "a second call of devices() differs from the first")
    for info in infos:
        require(isinstance(info, DeviceInfo), f"devices() must list DeviceInfo, got {type(info).__name__}")
        require(info.name and info.arch, "name and arch must not be empty")
        require(info.memory_bytes > 0 and info.max_block >= 1 and info.cores >= 1, f"sizes must be positive: {info}")
        require(info.shared_bytes >= 0 and info.simt_width >= 1, f"sizes must be positive: {info}")


@check(0)
def opens_twice_as_one(subject: Subject) -> None:
    """Opening a device a second time gives the same context."""
    require(subject.runtime.open(0) is subject.runtime.open(0), "open(0) gave two contexts")


@check(0)
def refuses_an_unknown_index(subject: Subject) -> None:
    """Asking for a device beyond the last is an error that tells how many there are."""
    count = len(subject.runtime.devices())
    require_error(DeviceNotFound, lambda: device(subject.name, count), f"index {count}")


@check(0)
def accepts_a_newer_minor_version(subject: Subject) -> None:
    """A plug-in made for a later minor version, with methods unknown today, still works."""

    class Newer:
        abi = (ABI[0], ABI[1] + 7)

        def __getattr__(self, name: str) -> object:
            return getattr(subject.runtime, name)

    runtime = Newer()
    check_abi(subject.name, subject.name, runtime.abi)
    Device(subject.name, 0, subject.runtime.devices()[0], runtime).synchronize()  # type: ignore[arg-type]
