"""Load, optimise and run exported argosy programs.

``save_program`` / ``load_program`` keep a program with its weights; ``import_program`` makes one of others' files;
``Predictor`` runs one; ``make_incremental`` turns a causal program into its decoding form; ``Generator`` generates with
it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from argosy_infer.__about__ import __version__

if TYPE_CHECKING:  # what names stand for, for editors and type checkers
    from argosy_infer.adapter_files import read_adapter
    from argosy_infer.adapters import Adapter, add_adapters
    from argosy_infer.export import LoadedProgram, load_program, save_program
    from argosy_infer.importers import Importer, import_program
    from argosy_infer.incremental import make_incremental
    from argosy_infer.llm.generator import Generator
    from argosy_infer.llm.sampling import SamplingOptions
    from argosy_infer.predictor import Predictor

__all__ = [
    "Adapter", "Generator", "Importer", "LoadedProgram", "Predictor", "SamplingOptions", "__version__", "add_adapters",
    "import_program", "load_program", "make_incremental", "read_adapter", "save_program",
]  # fmt: skip

_HOMES = {
    "Adapter": "adapters", "add_adapters": "adapters", "read_adapter": "adapter_files",
    "Importer": "importers", "import_program": "importers",
    "Generator": "llm.generator", "SamplingOptions": "llm.sampling", "LoadedProgram": "export",
    "load_program": "export", "save_program": "export", "Predictor": "predictor", "make_incremental": "incremental",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
