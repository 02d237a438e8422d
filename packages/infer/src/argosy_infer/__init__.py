"""Load, optimise and run exported argosy programs.

``save_program`` / ``load_program`` keep a program with its weights; ``Predictor`` runs one; ``make_incremental`` turns
a causal program into its decoding form; ``Generator`` generates with it.
"""

from importlib import import_module

from argosy_infer.__about__ import __version__

__all__ = [
    "Generator", "LoadedProgram", "Predictor", "SamplingOptions", "__version__", "load_program", "make_incremental",
    "save_program",
]  # fmt: skip

_HOMES = {
    "Generator": "llm.generator", "SamplingOptions": "llm.sampling", "LoadedProgram": "export",
    "load_program": "export", "save_program": "export", "Predictor": "predictor", "make_incremental": "incremental",
}  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
