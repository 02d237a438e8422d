"""Pictures: transforms, data sets, models and operators of detection. The face of ``argosy.vision``."""

from importlib import import_module

from argosy.faces import face

_FOLDERS = ("transforms", "models", "datasets")
_TABLE = {name: f"argosy.vision.{name}" for name in (*_FOLDERS, "ops")}
_TABLE |= {
    name: f"argosy.vision.image:{name}" for name in ("get_image_backend", "image_load", "set_image_backend")
}  # fmt: skip


def _of_folders(name: str) -> object | None:
    """What one of the folders offers under ``name``: Paddle has these names here, too."""
    faces = (import_module(f"argosy.vision.{folder}") for folder in _FOLDERS)
    return next((getattr(each, name) for each in faces if name in dir(each)), None)


__getattr__, __dir__ = face(__name__, _TABLE, globals(), _of_folders)
