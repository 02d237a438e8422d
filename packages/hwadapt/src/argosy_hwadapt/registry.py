"""Finding devices: built-in ones from a table, others by entry points, each loaded at first use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from importlib import import_module
from threading import RLock
from typing import Any

from argosy_hwadapt.contract import ABI, HOST, DeviceInfo, DeviceRuntime
from argosy_hwadapt.device import Device, HostDevice
from argosy_hwadapt.errors import AbiMismatch, DeviceError, DeviceNotFound

GROUP = "argosy.devices"
#: Device name -> "module:factory". These need no scan of installed distributions.
BUILT_IN = {
    "cpu": "argosy_hwadapt.cpu.runtime:create",
    "virtual": "argosy_hwadapt.virtual:create",
    "opencl": "argosy_hwadapt.opencl.runtime:create",
}

_lock = RLock()
if hasattr(os, "register_at_fork"):  # a child finds it free, and nothing half loaded
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
_runtimes: dict[str, DeviceRuntime] = {}
_devices: dict[tuple[str, int], Device] = {}
_failures: dict[str, DeviceError] = {}
_allowed: frozenset[str] | None = None


def device(name: str = "cpu", index: int = 0) -> Device:
    """Return the opened device ``name:index``; the same object for the same arguments.

    Raises DeviceNotFound when no plug-in has this name, when it is broken, or when it has no such index.
    """
    found = _devices.get((name, index))
    if found is not None:
        return found
    with _lock:
        if (name, index) not in _devices:
            _devices[name, index] = _open(name, index)
        return _devices[name, index]


def runtime(name: str) -> DeviceRuntime:
    """Return the plug-in of this name without opening a device. Raises as :func:`device` does."""
    with _lock:
        if name in _failures:
            raise DeviceNotFound(f"device {name!r} is not available: {_failures[name]}") from _failures[name]
        if name not in _runtimes:
            _runtimes[name] = _create(name)
        return _runtimes[name]


def device_infos(name: str = "cpu") -> list[DeviceInfo]:
    """List the devices of one plug-in without starting its runtime."""
    return list(runtime(name).devices())


def device_names() -> list[str]:
    """List the names of all installed plug-ins, loaded or not, without loading any."""
    return sorted(name for name in {*BUILT_IN, *_entry_points()} if _allowed is None or name in _allowed)


def plugin_names() -> list[str]:
    """List those of :func:`device_names` that other distributions offer, without loading any."""
    return [name for name in device_names() if name not in BUILT_IN]


def available() -> dict[str, str | None]:
    """Return for each installed plug-in None if it offers a device, or the reason why not. Loads them all."""
    return {name: why(name) for name in device_names()}


def why(name: str) -> str | None:
    """Return None if the plug-in loads and offers a device, else the reason why not."""
    try:
        return None if runtime(name).devices() else f"plug-in {name!r} found no device on this machine"
    except (DeviceError, OSError, RuntimeError) as error:
        return str(error)


def allow_only(names: Iterable[str] | None) -> None:
    """Restrict discovery to these device names; ``None`` lifts the restriction. ``cpu`` always stays."""
    global _allowed
    _allowed = None if names is None else frozenset(names) | {"cpu"}


def check_abi(name: str, owner: str, abi: tuple[int, int]) -> None:
    """Refuse a plug-in of another major contract version. Raises AbiMismatch naming both versions."""
    if abi[0] != ABI[0]:
        behind = owner if abi[0] < ABI[0] else "argosy-hwadapt"
        raise AbiMismatch(
            f"device plug-in {name!r} ({owner}) is made for device contract {abi[0]}.{abi[1]}, "
            f"argosy-hwadapt offers {ABI[0]}.{ABI[1]}; upgrade {behind}"
        )


def _open(name: str, index: int) -> Device:
    plugin = runtime(name)
    infos = plugin.devices()
    if not 0 <= index < len(infos):
        raise DeviceNotFound(f"device {name}:{index} does not exist; {name!r} has {len(infos)} device(s)")
    kind = HostDevice if HOST in infos[index].flags else Device
    return kind(name, index, infos[index], plugin)


def _create(name: str) -> DeviceRuntime:
    try:
        owner, load = _locate(name)
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


def _locate(name: str) -> tuple[str, Callable[[], Any]]:
    """Return the distribution that owns a device name, and a function that imports its factory."""
    if _allowed is not None and name not in _allowed:
        raise DeviceNotFound(f"device {name!r} is not among the allowed ones: {', '.join(sorted(_allowed))}")
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        return "argosy-hwadapt", lambda: getattr(import_module(module), attribute)
    points = _entry_points().get(name, [])
    if not points:
        raise DeviceNotFound(f"no device plug-in is named {name!r}; installed: {', '.join(device_names())}")
    owners = [point.dist.name if point.dist else "unknown distribution" for point in points]
    if len(points) > 1:
        raise DeviceNotFound(f"device name {name!r} is claimed by {' and '.join(owners)}; uninstall one of them")
    return owners[0], points[0].load


def _entry_points() -> dict[str, list[Any]]:
    """Scan the installed distributions, at the first call for a name that is not built in."""
    from importlib.metadata import entry_points  # 20 ms, and never needed for cpu

    found: dict[str, list[Any]] = {}
    for point in entry_points(group=GROUP):
        found.setdefault(point.name, []).append(point)
    return found
