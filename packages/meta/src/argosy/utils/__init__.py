"""Helpers of user code: imports that say what to install, versions, names, exchange of tensors, nests of them."""

from argosy.faces import face

_TABLE = {
    **{name: f"argosy.utils.checks:{name}" for name in ("deprecated", "require_version", "run_check", "try_import")},
    **{name: f"argosy.nn.nesting:{name}" for name in ("flatten", "map_structure")},
    "pack_sequence_as": "argosy.nn.nesting:pack_as",
    **{name: f"argosy.utils.{name}" for name in ("cpp_extension", "dlpack", "download", "unique_name")},
}

__all__ = [*_TABLE]
__getattr__, __dir__ = face(__name__, _TABLE, globals())
