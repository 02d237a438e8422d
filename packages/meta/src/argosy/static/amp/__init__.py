"""Mixed precision of static programs: scaled losses, and which operators are recorded in half precision."""

from argosy.faces import face

_TABLE = {
    **{
        name: f"argosy.static.amp.lists:{name}"
        for name in (
            "AutoMixedPrecisionLists", "CustomOpLists", "cast_model_to_fp16", "cast_parameters_to_fp16", "fp16_guard",
        )
    },
    "decorate": "argosy.static.amp.decoration:decorate",
    "bf16": "argosy.static.amp.bf16",
}  # fmt: skip

__getattr__, __dir__ = face(__name__, _TABLE, globals())
