"""Plug-ins of other distributions are found, checked and reported; a broken one harms nobody else."""

import subprocess
import sys

import pytest

import argosy_hwadapt as hw
from argosy_hwadapt import registry

PLUGIN = """
from argosy_hwadapt.virtual import VirtualRuntime
def good(abi): return VirtualRuntime(count=3)
def newer(abi): return VirtualRuntime(abi=(1, 9))
def next_major(abi): return VirtualRuntime(abi=(2, 0))
def last_major(abi): return VirtualRuntime(abi=(0, 7))
def empty(abi): return VirtualRuntime(count=0)
def broken(abi): raise OSError("libchip.so.1: cannot open shared object file")
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a distribution with device entry points for the length of a test."""
    monkeypatch.syspath_prepend(str(tmp_path))
    for table in (registry._runtimes, registry._devices, registry._failures):
        monkeypatch.setattr(registry, table_name(table), {})
    (tmp_path / "chip_plugin.py").write_text(PLUGIN)
    sys.modules.pop("chip_plugin", None)

    def make(distribution, **devices):
        folder = tmp_path / f"{distribution.replace('-', '_')}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        lines = [f"{name} = chip_plugin:{factory}" for name, factory in devices.items()]
        (folder / "entry_points.txt").write_text("[argosy.devices]\n" + "\n".join(lines))

    return make


def table_name(table):
    return next(name for name, value in vars(registry).items() if value is table)


def test_a_plugin_is_found_by_its_name(install):
    """A device of another distribution opens like a built-in one."""
    install("chip-one", chip="good")
    assert hw.device("chip", 2).info.name == "virtual device"
    assert "chip" in hw.device_names()
    assert len(hw.device_infos("chip")) == 3
    assert hw.why("chip") is None


def test_broken_plugins_are_reported_and_do_not_disturb(install):
    """available() tells for each why not, and the others work."""
    install("chip-one", chip="broken", nothing="empty", gone="missing_function", old="last_major")
    reasons = hw.available()
    assert reasons["cpu"] is None
    assert reasons["virtual"] is None
    assert "libchip.so.1: cannot open" in reasons["chip"]
    assert "found no device on this machine" in reasons["nothing"]
    assert "AttributeError" in reasons["gone"]
    assert "'old' (chip-one) is made for device contract 0.7" in reasons["old"]
    with pytest.raises(hw.DeviceNotFound, match=r"plug-in 'chip' \(chip-one\) does not load: OSError: libchip"):
        hw.device("chip")


def test_another_major_contract_is_refused_and_another_minor_accepted(install):
    """Both versions are named, and the package to upgrade."""
    install("chip-one", newer="newer", next="next_major", last="last_major")
    assert hw.device("newer").name == "newer"
    for name, match in (
        ("next", r"contract 2.0, argosy-hwadapt offers 1.0; upgrade argosy-hwadapt"),
        ("last", r"contract 0.7, argosy-hwadapt offers 1.0; upgrade chip-one"),
    ):
        with pytest.raises(hw.AbiMismatch, match=match):
            hw.device(name)


def test_two_owners_of_a_name_are_both_named(install):
    """A doubled name is an error for that name only."""
    install("chip-one", chip="good")
    install("chip-two", chip="good", fine="good")
    with pytest.raises(hw.DeviceNotFound, match=r"'chip' is claimed by chip-(one and chip-two|two and chip-one)"):
        hw.device("chip")
    assert hw.device("fine").index == 0


def test_import_and_the_cpu_need_no_scan_and_no_heavy_module():
    """The way to the CPU loads neither entry points nor cffi's parser nor MPI nor numpy."""
    code = (
        "import sys, argosy_hwadapt as hw; hw.device().allocate(10);"
        "print([m for m in ('importlib.metadata', 'pycparser', 'mpi4py', 'numpy', 'inspect') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_public_name_exists():
    """The lazily imported names are there, too, and an unknown one is an AttributeError."""
    for name in hw.__all__:
        assert getattr(hw, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        hw.nonsense  # noqa: B018


def test_devices_that_are_not_allowed_say_so(monkeypatch):
    monkeypatch.setattr(registry, "_allowed", lambda: ["chip"])
    monkeypatch.setattr(registry, "_limit", "A_LIST")
    assert hw.device("cpu").name == "cpu"
    assert hw.why("virtual") == "device 'virtual' is not available: A_LIST does not name it"
    with pytest.raises(hw.DeviceNotFound, match="A_LIST does not name it"):
        hw.device("virtual")
    monkeypatch.setattr(registry, "_allowed", lambda: ["virtual"])
    assert hw.why("virtual") is None
    assert hw.device("virtual") in registry.opened_devices()
