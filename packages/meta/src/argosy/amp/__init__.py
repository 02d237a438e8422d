"""Mixed precision: the face of ``argosy.amp``."""

# at once, because Paddle has a module of this name, too: imported later, it would take the function's place
from argosy.amp.auto_cast import auto_cast as auto_cast
from argosy.faces import face

_TABLE = {
    "auto_cast": "argosy.amp.casting:auto_cast",
    "autocast": "argosy.amp.casting:auto_cast",
    "amp_guard": "argosy.amp.casting:auto_cast",
    "decorate": "argosy.amp.decoration:decorate",
    "amp_decorate": "argosy.amp.decoration:decorate",
    "GradScaler": "argosy.amp.scaler:GradScaler",
    "AmpScaler": "argosy.amp.scaler:GradScaler",
    "is_bfloat16_supported": "argosy.amp.support:is_bfloat16_supported",
    "is_float16_supported": "argosy.amp.support:is_float16_supported",
    **{
        name: f"argosy.amp.support:{name}"
        for name in (
            "get_autocast_cpu_dtype",
            "get_autocast_dtype",
            "get_autocast_gpu_dtype",
            "is_autocast_enabled",
        )
    },
    "debugging": "argosy.amp.debugging",
    "white_list": "argosy.amp.lists:white_list",
    "black_list": "argosy.amp.lists:black_list",
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())
