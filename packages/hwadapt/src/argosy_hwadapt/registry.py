"""Devices by name, each opened at its first use."""

from __future__ import annotations

from collections.abc import Callable, Collection
from threading import RLock
from typing import Any

from argosy_hwadapt.contract import ABI, HOST, DeviceInfo, DeviceRuntime
from argosy_hwadapt.device import Device, HostDevice
from argosy_hwadapt.errors import AbiMismatch, DeviceError, DeviceNotFound
from argosy_hwadapt.fork import renew_in_child
from argosy_hwadapt.plugins import PlugIns

_PLUG_INS = PlugIns(
    "argosy.devices",
    "device plug-in",
    DeviceNotFound,
    {
        "cpu": "argosy_hwadapt.cpu.runtime:create",
        "virtual": "argosy_hwadapt.virtual:create",
        "opencl": "argosy_hwadapt.opencl.runtime:create",
    },
)

_lock = renew_in_child(RLock())
_runtimes: dict[str, DeviceRuntime] = {}
_devices: dict[tuple[str, int], Device] = {}
_failures: dict[str, DeviceError] = {}
_allowed: Callable[[], Collection[str] | None] | None = None
_limit = ""


def limit_names(allowed: Callable[[], Collection[str] | None], name: str) -> None:
    """Open only devices that ``allowed()`` names (all where it is None), and the cpu; ``name`` is what says so."""
    global _allowed, _limit
    _allowed, _limit = allowed, name


def opened_devices() -> list[Device]:
    """The devices that are open, the host's among them."""
    return list(_devices.values())


def device(name: str = "cpu", index: int = 0) -> Device:
    """Return the opened device ``name:index``; the same object for the same arguments.

    Raises DeviceNotFound when no plug-in has this name, when it is broken, or when it has no such index.
    """
    found = _devices.get((name, index))
    if found is not None and _is_allowed(name):
        return found
    with _lock:
        if not _is_allowed(name) or (name, index) not in _devices:
            _devices[name, index] = _open_device(name, index)
        return _devices[name, index]


def runtime(name: str) -> DeviceRuntime:
    """Return the plug-in of this name without opening a device. Raises as :func:`device` does."""
    if not _is_allowed(name):
        raise DeviceNotFound(f"device {name!r} is not available: {_limit} does not name it")
    with _lock:
        if name in _failures:
            raise DeviceNotFound(f"device {name!r} is not available: {_failures[name]}") from _failures[name]
        if name not in _runtimes:
            _runtimes[name] = _create(name)
        return _runtimes[name]


def device_infos(name: str = "cpu") -> list[DeviceInfo]:
    """List the devices of one plug-in without starting its runtime."""
    return list(runtime(name).devices())


def index_of(name: str, text: str) -> int:
    """Return the index of the first device of plug-in ``name`` whose own name has ``text`` in it, in any case.

    Raises DeviceNotFound naming those that there are.
    """
    names = [info.name for info in device_infos(name)]
    for index, found in enumerate(names):
        if text.lower() in found.lower():
            return index
    raise DeviceNotFound(f"no device of {name!r} has {text!r} in its name; there are: {', '.join(names) or 'none'}")


def device_names() -> list[str]:
    """List the names of all installed plug-ins, loaded or not, without loading any."""
    return _PLUG_INS.names()


def plugin_names() -> list[str]:
    """List those of :func:`device_names` that other distributions offer, without loading any."""
    return [name for name in device_names() if name not in _PLUG_INS.built_in]


def available() -> dict[str, str | None]:
    """Return for each installed plug-in None if it offers a device, or the reason why not. Loads them all."""
    return {name: why(name) for name in device_names()}


def why(name: str) -> str | None:
    """Return None if the plug-in loads and offers a device, else the reason why not."""
    try:
        return None if runtime(name).devices() else f"plug-in {name!r} found no device on this machine"
    except (DeviceError, OSError, RuntimeError) as error:
        return str(error)


def check_abi(name: str, owner: str, abi: tuple[int, int]) -> None:
    """Refuse a plug-in of another major contract version. Raises AbiMismatch naming both versions."""
    if abi[0] != ABI[0]:
        behind = owner if abi[0] < ABI[0] else "argosy-hwadapt"
        raise AbiMismatch(
            f"device plug-in {name!r} ({owner}) is made for device contract {abi[0]}.{abi[1]}, "
            f"argosy-hwadapt offers {ABI[0]}.{ABI[1]}; upgrade {behind}"
        )


def _is_allowed(name: str) -> bool:
    names = _allowed() if _allowed is not None and name != "cpu" else None
    return names is None or name in names


def _open_device(name: str, index: int) -> Device:
    plugin = runtime(name)
    infos = plugin.devices()
    if not 0 <= index < len(infos):
        raise DeviceNotFound(f"device {name}:{index} does not exist; {name!r} has {len(infos)} device(s)")
    kind = HostDevice if HOST in infos[index].flags else Device
    return kind(name, index, infos[index], plugin)


def _create(name: str) -> DeviceRuntime:
    try:
        owner, load = _PLUG_INS.locate(name)
        plugin = _load(name, owner, load)
        check_abi(name, owner, plugin.abi)
    except DeviceError as error:
        _failures[name] = error
        raise
    return plugin


def _load(name: str, owner: str, load: Callable[[], Any]) -> DeviceRuntime:
    try:
        plugin: DeviceRuntime = load()(ABI)
    except DeviceError:
        raise
    except Exception as cause:
        raise DeviceNotFound(
            f"device plug-in {name!r} ({owner}) does not load: {type(cause).__name__}: {cause}"
        ) from cause
    return plugin
