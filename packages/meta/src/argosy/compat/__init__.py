"""Functions with the signatures of another framework, as Paddle keeps them under ``paddle.compat``."""

from argosy.faces import face

_FUNCTIONS = ("equal", "max", "median", "min", "nanmedian", "seed", "slogdet", "sort", "split", "unique")
_ABSENT = ("disable_compat", "enable_compat")
_TABLE = {
    "nn": "argosy.compat.nn",
    **{name: f"argosy.compat.absent:{name}" for name in _ABSENT},
    **{name: f"argosy.compat.functions:{name}" for name in _FUNCTIONS},
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())
