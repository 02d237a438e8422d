"""Programs of language models' files for `argosy_infer.import_program`: folders of transformers and GGUF files."""

from __future__ import annotations

import os
from typing import Any

from argosy.jit.export import export_program
from argosy.models.loading import load_model
from argosy.nn.layer import Layer
from argosy.static import InputSpec
from argosy_infer import LoadedProgram

__all__ = ["LanguageModelImporter", "program_of", "programs_of_predictions"]


def program_of(model: Layer) -> LoadedProgram:
    """The forward program of a model over ids [batch, sequence], with the number of its positions."""
    loaded = export_program(model, [InputSpec([None, None], "int64", "ids")])
    loaded.program.attributes["positions_limit"] = int(model.config.positions)
    return loaded


def programs_of_predictions(model: Layer) -> tuple[LoadedProgram, LoadedProgram]:
    """The programs that :class:`argosy_infer.llm.SpeculativeGenerator` takes, of a model with a module that predicts
    further tokens: ids -> (logits, hidden states), and (next ids, hidden states) -> logits of the tokens after those.

    Raises ValueError for a model without such modules.
    """
    if not getattr(model.config, "predictions", 0):
        raise ValueError("the model has no module that predicts further tokens (num_nextn_predict_layers)")
    ids, width = InputSpec([None, None], "int64", "ids"), model.config.width
    hidden = InputSpec([None, None, width], model.model.embed_tokens.weight.dtype, "hidden")
    main, further = export_program(_WithStates(model), [ids]), export_program(_Further(model), [ids, hidden])
    for loaded in (main, further):
        loaded.program.attributes["positions_limit"] = int(model.config.positions)
    return main, further


class _WithStates(Layer):
    """Logits, and the states that they are made of."""

    def __init__(self, model: Layer) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids_BT: Any) -> Any:
        states_BTD = self.model.model(ids_BT)
        return self.model.head(states_BTD), states_BTD


class _Further(_WithStates):
    """Logits of the first module that predicts further tokens."""

    def forward(self, ids_BT: Any, hidden_BTD: Any) -> Any:
        return self.model.head(self.model.model.predict_further(ids_BT, hidden_BTD))


class LanguageModelImporter:
    """The entry point ``language-model`` of ``argosy.importers``."""

    def accepts(self, path: str) -> bool:
        """Folders with a ``config.json``, and GGUF files."""
        return path.endswith(".gguf") or os.path.isfile(os.path.join(path, "config.json"))

    def load(self, path: str) -> LoadedProgram:
        """The program. Raises as :func:`argosy.models.load_model` does."""
        return program_of(load_model(path))
