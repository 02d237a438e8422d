"""Pictures: transforms, data sets, models and operators of detection."""

from importlib import import_module

from argosy.api import lazy_names

_FOLDERS = ("transforms", "models", "datasets")


def _of_folders(name: str) -> object | None:
    """What one of the folders offers under ``name``: Paddle has these names here, too."""
    folders = (import_module(f"argosy.vision.{folder}") for folder in _FOLDERS)
    return next((getattr(each, name) for each in folders if name in dir(each)), None)


__getattr__, __dir__ = lazy_names(__name__, globals(), _of_folders)
