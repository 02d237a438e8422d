"""Programs of language models' files for `argosy_infer.import_program`: folders of transformers and GGUF files."""

from __future__ import annotations

import os
from typing import Any

from argosy.jit.export import export_program
from argosy.models.loading import load_model, sources_of
from argosy.nn.layer import Layer
from argosy.static import InputSpec
from argosy_infer import LoadedProgram, save_program

__all__ = ["LanguageModelImporter", "export", "program_of", "programs_of_predictions"]


def program_of(model: Layer) -> LoadedProgram:
    """The forward program of a model over ids [batch, sequence], with the number of its positions."""
    loaded = export_program(model, [InputSpec([None, None], "int64", "ids")])
    loaded.program.attributes["positions_limit"] = int(model.config.positions)
    return loaded


def export(model: Layer, path: str | os.PathLike[str]) -> None:
    """Write the program of a model that :func:`~argosy.models.load_model` gave, as :func:`argosy.jit.save` does, with
    its number of positions. Weights that lie in the model's files as they are stay there and are mapped from there.

    Raises TypeError for another layer, ProgramFileError for a path that would replace one of these files.
    """
    loaded = program_of(model)
    save_program(loaded.program, loaded.states, path, sources=sources_of(model))


def programs_of_predictions(model: Layer) -> tuple[LoadedProgram, ...]:
    """The programs that :class:`argosy_infer.llm.SpeculativeGenerator` takes, of a model with modules that predict
    further tokens: ids -> (logits, hidden states), and for each module (next ids, hidden states) -> logits of the
    tokens after those, and, but for the last one, the states that the next module takes.

    Raises ValueError for a model without such modules.
    """
    if not getattr(model.config, "predictions", 0):
        raise ValueError("the model has no module that predicts further tokens (num_nextn_predict_layers)")
    ids, width = InputSpec([None, None], "int64", "ids"), model.config.width
    hidden = InputSpec([None, None, width], model.model.embed_tokens.dtype, "hidden")
    further = [export_program(_Predictions(model, 1 + i), [ids, hidden]) for i in range(model.config.predictions)]
    programs = (export_program(_Predictions(model, 0), [ids]), *further)
    for loaded in programs:
        loaded.program.attributes["positions_limit"] = int(model.config.positions)
    return programs


class _Predictions(Layer):
    """Logits, and the states that they are made of: the model's own, or those of module ``depth`` (from 1), which takes
    the states before it; the last module gives logits alone."""

    def __init__(self, model: Layer, depth: int) -> None:
        super().__init__()
        self.model, self.depth = model, depth

    def forward(self, ids_BT: Any, hidden_BTD: Any = None) -> Any:
        decoder = self.model.model
        states_BTD = decoder.predict_further(ids_BT, hidden_BTD, self.depth) if self.depth else decoder(ids_BT)
        logits_BTV = self.model.head(states_BTD)
        return logits_BTV if self.depth == self.model.config.predictions else (logits_BTV, states_BTD)


class LanguageModelImporter:
    """The entry point ``language-model`` of ``argosy.importers``."""

    def accepts(self, path: str) -> bool:
        """Folders with a ``config.json``, and GGUF files."""
        return path.endswith(".gguf") or os.path.isfile(os.path.join(path, "config.json"))

    def load(self, path: str) -> LoadedProgram:
        """The program. Raises as :func:`argosy.models.load_model` does."""
        return program_of(load_model(path))
