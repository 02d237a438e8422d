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


def programs_of_predictions(model: Layer) -> tuple[LoadedProgram, LoadedProgram]:
    """The programs that :class:`argosy_infer.llm.SpeculativeGenerator` takes, of a model with a module that predicts
    further tokens: ids -> (logits, hidden states), and (next ids, hidden states) -> logits of the tokens after those.

    Raises ValueError for a model without such modules.
    """
    if not getattr(model.config, "predictions", 0):
        raise ValueError("the model has no module that predicts further tokens (num_nextn_predict_layers)")
    ids, width = InputSpec([None, None], "int64", "ids"), model.config.width
    hidden = InputSpec([None, None, width], model.model.embed_tokens.weight.dtype, "hidden")
    main, further = export_program(_Predictions(model), [ids]), export_program(_Predictions(model), [ids, hidden])
    for loaded in (main, further):
        loaded.program.attributes["positions_limit"] = int(model.config.positions)
    return main, further


class _Predictions(Layer):
    """Logits, and the states that they are made of; given such states, the logits of the first module that predicts
    further tokens."""

    def __init__(self, model: Layer) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids_BT: Any, hidden_BTD: Any = None) -> Any:
        if hidden_BTD is not None:
            return self.model.head(self.model.model.predict_further(ids_BT, hidden_BTD))
        states_BTD = self.model.model(ids_BT)
        return self.model.head(states_BTD), states_BTD


class LanguageModelImporter:
    """The entry point ``language-model`` of ``argosy.importers``."""

    def accepts(self, path: str) -> bool:
        """Folders with a ``config.json``, and GGUF files."""
        return path.endswith(".gguf") or os.path.isfile(os.path.join(path, "config.json"))

    def load(self, path: str) -> LoadedProgram:
        """The program. Raises as :func:`argosy.models.load_model` does."""
        return program_of(load_model(path))
