"""What is installed and what the machine has."""

from __future__ import annotations

import platform
import sys
from importlib import import_module, metadata

__all__ = ["show_devices", "show_info", "versions"]

PACKAGES = (
    "argosy", "argosy-hwadapt", "argosy-tensorcore", "argosy-pir", "argosy-phi-ops", "argosy-autograd", "argosy-cinn",
    "argosy-autoparallel", "argosy-infer", "numpy", "ml_dtypes", "llvmlite", "cffi", "mpi4py",
)  # fmt: skip


def versions() -> dict[str, str | None]:
    """Distribution -> installed version, None where it is not installed."""
    found: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def show_info() -> int:
    """Print versions, Python, machine and settings."""
    from argosy_hwadapt import device
    from argosy_phi_ops.compiler import available_compilers

    for name, version in versions().items():
        _say(f"{name:<22}{version or 'not installed'}")
    info = device("cpu").info
    _say(f"{'python':<22}{platform.python_version()} on {platform.system()} {platform.machine()}")
    _say(f"{'compilers':<22}{', '.join(available_compilers())}")
    _say(f"{'cpu':<22}{info.arch}, {info.cores} cores, {info.memory_bytes / 2**30:.1f} GiB")
    show_settings()
    return 0


def show_settings() -> None:
    """Print every variable of the environment that argosy reads: value, where it comes from, meaning."""
    from argosy_phi_ops.settings import declared_settings

    for package in ("argosy_cinn", "argosy"):
        import_module(f"{package}.settings")
    for setting in declared_settings():
        source = "environment" if setting.is_set else "default"
        code = "; part of the key of compiled code" if setting.changes_code else ""
        _say(f"{setting.name:<28}{setting.read()!r} ({source}) {setting.doc}{code}")


def show_devices(why: bool) -> int:
    """Print the devices that can be opened, and with ``why`` what is missing for the others."""
    from argosy_hwadapt import available

    import_module("argosy_phi_ops.eager.placement")  # which knows ARGOSY_DEVICES
    for name, reason in sorted(available().items()):
        if reason is None:
            _say(name)
        elif why:
            _say(f"{name}: {reason}")
    return 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
