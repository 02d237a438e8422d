"""Programs of language models' files for `argosy_infer.import_program`: folders of transformers and GGUF files."""

from __future__ import annotations

import os

from argosy.jit.export import export_program
from argosy.models.loading import load_model
from argosy.nn.layer import Layer
from argosy.static import InputSpec
from argosy_infer import LoadedProgram

__all__ = ["LanguageModelImporter", "program_of"]


def program_of(model: Layer) -> LoadedProgram:
    """The forward program of a model over ids [batch, sequence], with the number of its positions."""
    loaded = export_program(model, [InputSpec([None, None], "int64", "ids")])
    loaded.program.attributes["positions_limit"] = int(model.config.positions)
    return loaded


class LanguageModelImporter:
    """The entry point ``language-model`` of ``argosy.importers``."""

    def accepts(self, path: str) -> bool:
        """Folders with a ``config.json``, and GGUF files."""
        return path.endswith(".gguf") or os.path.isfile(os.path.join(path, "config.json"))

    def load(self, path: str) -> LoadedProgram:
        """The program. Raises as :func:`argosy.models.load_model` does."""
        return program_of(load_model(path))
