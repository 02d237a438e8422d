"""The argosy fusion compiler: programs in, native executables out."""

from argosy_cinn.__about__ import __version__

_LAZY = {
    "CinnCompiler": "argosy_cinn.compiler",
    "explain": "argosy_cinn.tools.explanation",
}

__all__ = ["CinnCompiler", "__version__", "explain"]


def __getattr__(name: str) -> object:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'argosy_cinn' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(module), name)
    return value
