"""From LLVM text to SPIR-V."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from argosy_cinn.runtime.jit import CodegenError

#: Characters of what LLVM says that an error repeats.
_MOST_SAID = 500
_PROGRAM = Path(__file__).with_name("emit_spirv.py")


def compile_spirv(text: str) -> bytes:
    """The SPIR-V of a module, made in a process of its own (see `emit_spirv`). Raises `CodegenError` where LLVM has
    none for it, or none at all."""
    done = subprocess.run([sys.executable, "-P", str(_PROGRAM)], input=text.encode(), capture_output=True)
    if done.returncode:
        said = done.stderr.decode(errors="replace").rpartition("RuntimeError: ")[2].strip()[:_MOST_SAID]
        raise CodegenError(f"LLVM emits no SPIR-V (status {done.returncode}): {said}", text)
    return done.stdout


__all__ = ["compile_spirv"]
