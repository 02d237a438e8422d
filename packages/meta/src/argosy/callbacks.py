"""Callbacks of ``Model``: the face of ``argosy.callbacks``."""

from argosy.faces import face

_TABLE = {
    **{
        name: f"argosy.hapi.callbacks:{name}"
        for name in ("Callback", "EarlyStopping", "History", "LRScheduler", "ModelCheckpoint")
    },
    **{name: f"argosy.hapi.monitors:{name}" for name in ("ReduceLROnPlateau", "VisualDL", "WandbCallback")},
    "ProgBarLogger": "argosy.hapi.progress:ProgBarLogger",
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())
