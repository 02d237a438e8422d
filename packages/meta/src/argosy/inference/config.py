"""Which model a predictor runs, and how."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from argosy.inference.kinds import PrecisionType
from argosy_hwadapt import why
from argosy_tensorcore.place import CPU, Place

__all__ = ["Config"]

_ENGINES = ("tensorrt", "trt", "xpu", "ipu", "onnxruntime", "ort", "openvino", "lite", "npu", "dlnne")
"""Words of the methods that belong to an engine or a chip that is not here."""


class Config:
    """The files of a model and settings of its predictor.

    ``Config("model.json", "model.pdiparams")``, ``Config("folder", "model")`` or ``Config("folder")`` where it holds
    one model. A model that ``jit.save`` of argosy wrote (``.pir``) is found by the same names. The compiler always
    optimises and plans memory, so that switches of Paddle's passes, oneDNN and memory are kept and change nothing;
    what would change results, or asks for an engine that is not here, raises NotImplementedError.
    """

    Precision = PrecisionType
    Float32, Int8, Half, Bfloat16 = PrecisionType

    def __init__(self, model: str | os.PathLike[str] = "", params: str | os.PathLike[str] | None = None) -> None:
        self._folder = self._program = self._weights = ""
        self._passes = PassBuilder()
        self._switches = {"ir_optim": True, "mkldnn": True, "glog_info": True, "memory_optim": True, "names": False}
        self._threads: int | None = None
        self._place = CPU
        if params is not None or os.fspath(model):
            self.set_model(model, params)

    def set_model(self, model: str | os.PathLike[str], params: str | os.PathLike[str] | None = None) -> None:
        """Take the model of a folder, of a folder and the name of its files, or of two files."""
        if params is None:
            self._folder, self._program, self._weights = os.fspath(model), "", ""
        elif os.path.isdir(model):
            base = os.path.join(model, params)
            self._folder, self._program, self._weights = "", base + ".json", base + ".pdiparams"
        else:
            self._folder, self._program, self._weights = "", os.fspath(model), os.fspath(params)

    def set_prog_file(self, path: str) -> None:
        """Take the program of this file."""
        self._program = path

    def set_params_file(self, path: str) -> None:
        """Take the weights of this file."""
        self._weights = path

    def model_dir(self) -> str:
        """The folder, where only that was given."""
        return self._folder

    def prog_file(self) -> str:
        """The file of the program."""
        return self._program

    def params_file(self) -> str:
        """The file of the weights."""
        return self._weights

    def model_from_memory(self) -> bool:
        """False: models come from files."""
        return False

    def path(self) -> Path:
        """The program's file, ``.pir`` or ``.json``: that which was named, or one beside it of the same name.

        Raises RuntimeError (as Paddle does) naming what is not there; NotImplementedError for Paddle 2's
        ``.pdmodel``.
        """
        named = Path(self._program) if self._program else _only_program(Path(self._folder))
        if named.suffix in (".pir", ".json") and named.exists():
            return named
        beside = [named.with_suffix(suffix) for suffix in (".pir", ".json")]
        found = next((file for file in beside if file.exists()), None)
        if found is not None:
            return found
        if named.exists():
            raise NotImplementedError(f"inference: {named} is no program of Paddle 3 or argosy (.json or .pir)")
        raise RuntimeError(f"inference: cannot open file {named}, please confirm whether the file is normal")

    def disable_gpu(self) -> None:
        """Run on the cpu."""
        self._place = CPU

    def enable_use_gpu(self, memory_pool_init_size_mb: int, device_id: int = 0, precision_mode: Any = None) -> None:
        """Run on a GPU; warns where there is none, as Paddle's build for the cpu does, and goes on there."""
        if why("cuda") is not None:
            warnings.warn("inference: there is no GPU; the predictor runs on the cpu", stacklevel=2)
            return
        self._place = Place("gpu", device_id)

    def use_gpu(self) -> bool:
        """Whether predictors run on a GPU."""
        return self._place.is_gpu_place()

    def enable_custom_device(self, device_type: str, device_id: int = 0, precision_mode: Any = None) -> None:
        """Run on a device of a plug-in. Raises DeviceNotFound where there is none of that name; programs compute in the
        dtypes they were exported in."""
        place = Place(device_type, device_id)
        place.device()
        self._place = place

    def use_custom_device(self) -> bool:
        """Whether predictors run on a device of a plug-in."""
        return not (self._place.is_cpu_place() or self._place.is_gpu_place())

    def custom_device_type(self) -> str:
        """Its name, or nothing."""
        return self._place.kind if self.use_custom_device() else ""

    def custom_device_id(self) -> int:
        """Its number, or 0."""
        return self._place.index if self.use_custom_device() else 0

    def switch_ir_optim(self, x: bool = True) -> None:
        """Kept; the compiler optimises."""
        self._switches["ir_optim"] = bool(x)

    def ir_optim(self) -> bool:
        """What ``switch_ir_optim`` said."""
        return self._switches["ir_optim"]

    def enable_memory_optim(self, x: bool = True) -> None:
        """Kept; memory is planned."""
        self._switches["memory_optim"] = bool(x)

    def enable_mkldnn(self) -> None:
        """Kept; kernels are argosy's own."""
        self._switches["mkldnn"] = True

    def disable_mkldnn(self) -> None:
        """Kept; kernels are argosy's own."""
        self._switches["mkldnn"] = False

    def mkldnn_enabled(self) -> bool:
        """What ``enable_mkldnn`` and ``disable_mkldnn`` said last."""
        return self._switches["mkldnn"]

    enable_onednn, disable_onednn, onednn_enabled = enable_mkldnn, disable_mkldnn, mkldnn_enabled

    def set_mkldnn_cache_capacity(self, capacity: int = 0) -> None:
        """Nothing to do: compiled programs run for any size."""

    set_onednn_cache_capacity = set_mkldnn_cache_capacity

    def set_mkldnn_op(self, op_list: Iterable[str]) -> None:
        """Nothing to do: kernels are argosy's own."""

    set_onednn_op = set_mkldnn_op

    def disable_mkldnn_fc_passes(self) -> None:
        """Nothing to do: kernels are argosy's own."""

    disable_onednn_fc_passes = disable_mkldnn_fc_passes

    def enable_mkldnn_bfloat16(self) -> NoReturn:
        """Raises NotImplementedError: export the model under ``amp.auto_cast`` instead."""
        raise NotImplementedError("inference.Config.enable_mkldnn_bfloat16: export under amp.auto_cast instead")

    enable_onednn_bfloat16 = enable_mkldnn_bfloat16

    def enable_mkldnn_int8(self, mkldnn_int8_enabled_op_types: Iterable[str] = ()) -> NoReturn:
        """Raises NotImplementedError: programs compute in the dtypes they were exported in."""
        raise NotImplementedError("inference.Config.enable_mkldnn_int8 is not implemented")

    enable_onednn_int8 = enable_mkldnn_int8

    def mkldnn_int8_enabled(self) -> bool:
        """False."""
        return False

    onednn_int8_enabled = mkldnn_int8_enabled

    def set_cpu_math_library_num_threads(self, cpu_math_library_num_threads: int) -> None:
        """How many threads compiled programs run on: of the whole process, at most those it had by itself."""
        if cpu_math_library_num_threads < 1:
            raise ValueError(f"cpu_math_library_num_threads should be positive, got {cpu_math_library_num_threads}")
        self._threads = int(cpu_math_library_num_threads)

    def cpu_math_library_num_threads(self) -> int:
        """What ``set_cpu_math_library_num_threads`` said, or 1."""
        return self._threads or 1

    def disable_glog_info(self) -> None:
        """Nothing to do: a predictor prints nothing."""
        self._switches["glog_info"] = False

    def glog_info_disabled(self) -> bool:
        """Whether ``disable_glog_info`` was called."""
        return not self._switches["glog_info"]

    def switch_use_feed_fetch_ops(self, x: bool = True) -> None:
        """Nothing to do: programs have inputs and outputs."""

    def use_feed_fetch_ops_enabled(self) -> bool:
        """False."""
        return False

    def switch_specify_input_names(self, x: bool = True) -> None:
        """Kept; inputs always have names."""
        self._switches["names"] = bool(x)

    def specify_input_name(self) -> bool:
        """What ``switch_specify_input_names`` said."""
        return self._switches["names"]

    def enable_new_ir(self, x: bool = True) -> None:
        """Nothing to do: programs are in PIR."""

    def new_ir_enabled(self) -> bool:
        """True."""
        return True

    def enable_new_executor(self, x: bool = True) -> None:
        """Nothing to do: a program is one native call."""

    def enable_cinn(self) -> None:
        """Nothing to do: programs are compiled."""

    def enable_profile(self) -> None:
        """Nothing to do: ``argosy.profiler`` records predictors, too."""

    def enable_save_optim_model(self, save_optimized_model: bool = False) -> None:
        """Nothing to do: what is compiled is found again in the disk cache."""

    def set_optim_cache_dir(self, path: str) -> None:
        """Nothing to do: the disk cache lies where all of argosy's does."""

    def use_optimized_model(self, x: bool = True) -> None:
        """Nothing to do: what is compiled is found again in the disk cache."""

    def set_optimization_level(self, opt_level: int = 2) -> None:
        """Nothing to do: the compiler optimises."""

    def switch_ir_debug(self, x: bool = True, passes: Iterable[str] = ()) -> None:
        """Nothing to do: ``ARGOSY_DUMP=folder`` writes programs before and after each pass."""

    def pass_builder(self) -> PassBuilder:
        """The list of passes, which ``delete_pass`` shortens."""
        return self._passes

    def delete_pass(self, name: str) -> None:
        """Nothing to do: Paddle's passes are not here."""
        self._passes.delete_pass(name)

    def summary(self) -> str:
        """The settings, a line each."""
        shown = {"prog_file": self._program, "params_file": self._weights, **self._switches}
        return "".join(f"{name}: {value}\n" for name, value in shown.items())

    def __getattr__(self, name: str) -> Any:
        """What belongs to other engines: questions say no, the rest raises NotImplementedError."""
        if name.startswith("_") or not any(word in name for word in _ENGINES):
            raise AttributeError(f"Config has no attribute {name!r}")
        if name.endswith(("_enabled", "_shape")) or name in ("use_xpu",):
            return lambda: False

        def absent(*args: Any, **kwargs: Any) -> NoReturn:
            raise NotImplementedError(f"inference.Config.{name}: that engine is not here; programs run on the cpu")

        return absent


class PassBuilder:
    """Paddle's list of optimisations: here empty, as the compiler has its own."""

    def all_passes(self) -> list[str]:
        """No names."""
        return []

    def delete_pass(self, name: str) -> None:
        """Nothing to do: no such pass is here."""


def _only_program(folder: Path) -> Path:
    """The one program of a folder."""
    found = [file for suffix in (".pir", ".json") for file in sorted(folder.glob("*" + suffix))]
    forwards = [file for file in found if "." not in file.stem]  # "model.method.json" is a method of "model"
    if len(forwards) != 1:
        raise RuntimeError(
            f"inference: {folder} should hold one program (.json or .pir), found {[f.name for f in forwards]}"
        )
    return forwards[0]
