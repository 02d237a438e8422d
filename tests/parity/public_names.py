"""Public names of areas beyond functions and layers, as the wheel has them: written into ``records/names.json``.

    PYTHON tests/parity/public_names.py

PYTHON is an interpreter that has ``paddlepaddle`` installed. An area is what some modules offer (``__all__``), and the
public members that each class among it defines.
"""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["MODULES", "members", "offered"]

NAMES = Path(__file__).parent / "records" / "names.json"

MODULES: dict[str, tuple[str, ...]] = {
    "distributed": (
        "distributed", "distributed.communication.stream", "distributed.checkpoint", "distributed.rpc",
        "distributed.sharding", "distributed.utils",
    ),
    "distributed.fleet": ("distributed.fleet", "distributed.fleet.utils"),
    "static": ("static", "static.nn", "static.amp"),
    "vision": ("vision", "vision.datasets", "vision.models", "vision.ops", "vision.transforms"),
    "incubate": (
        "incubate", "incubate.asp", "incubate.autograd", "incubate.nn", "incubate.nn.functional", "incubate.optimizer",
        "incubate.optimizer.functional", "incubate.autotune",
    ),
    "device": ("device", "device.cuda", "device.xpu"),
    "inference": ("inference",),
    "quantization": ("quantization", "quantization.observers", "quantization.quanters", "nn.quant"),
    "text": ("text", "text.datasets"),
    "audio": ("audio", "audio.backends", "audio.datasets", "audio.features", "audio.functional"),
    "utils": ("utils", "utils.cpp_extension", "utils.dlpack", "utils.unique_name"),
    "profiler": ("profiler",),
    "others": ("hub", "linalg", "onnx", "regularizer", "sysconfig", "version"),
}  # fmt: skip


def offered(root: str, module: str) -> Iterator[str]:
    """The names of a module with members of its classes; none where there is no such module."""
    try:
        found = import_module(f"{root}.{module}")
    except ImportError:
        return
    for name in getattr(found, "__all__", ()):
        thing = getattr(found, name, None)
        if thing is None or inspect.ismodule(thing):
            continue
        yield f"{module}.{name}"
        if inspect.isclass(thing):
            yield from (f"{module}.{name}.{member}" for member in members(thing))


def members(kind: type) -> list[str]:
    """The public functions and properties that a class defines itself."""
    functions = (staticmethod, classmethod, property)
    return [
        name
        for name, thing in sorted(vars(kind).items())
        if not name.startswith("_") and (inspect.isfunction(thing) or isinstance(thing, functions))
    ]


def main() -> None:
    """Write the areas, beside those that are there."""
    warnings.simplefilter("ignore")
    areas: dict[str, Any] = json.loads(NAMES.read_text(encoding="utf-8"))
    known = {name for area, names in areas.items() if area not in MODULES for name in names}
    for area, modules in MODULES.items():
        found = {name for module in modules for name in offered("paddle", module)}
        areas[area] = sorted(found - known)
        print(f"{area}: {len(areas[area])}")  # noqa: T201
    NAMES.write_text(json.dumps(areas, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
