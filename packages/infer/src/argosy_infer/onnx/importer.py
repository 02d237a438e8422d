"""ONNX files for `argosy_infer.import_program`."""

from __future__ import annotations

from importlib.util import find_spec

from argosy_infer.export import LoadedProgram

__all__ = ["OnnxImporter"]


class OnnxImporter:
    """The importer ``onnx``."""

    def accepts(self, path: str) -> bool:
        """Files named ``*.onnx``."""
        return path.endswith(".onnx")

    def load(self, path: str) -> LoadedProgram:
        """The program. Raises as :func:`argosy_infer.onnx.load` does, ImportError without the library ``onnx``."""
        if find_spec("onnx") is None:
            raise ImportError(f"{path} needs the library onnx: pip install argosy-infer[onnx]")
        from argosy_infer.onnx.session import load

        return load(path)
