"""Pictures: transforms, data sets, models and operators of detection. The face of ``argosy.vision``."""

from argosy.faces import face

_TABLE = {name: f"argosy.vision.{name}" for name in ("datasets", "models", "ops", "transforms")}
_TABLE |= {
    name: f"argosy.vision.image:{name}" for name in ("get_image_backend", "image_load", "set_image_backend")
}  # fmt: skip

__getattr__, __dir__ = face(__name__, _TABLE, globals())
