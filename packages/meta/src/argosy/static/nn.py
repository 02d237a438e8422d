"""Layers of static programs as functions, and control flow."""

from argosy.faces import face

_TABLE = {
    **{
        name: f"argosy.static.control_flow:{name}"
        for name in ("case", "cond", "static_pylayer", "switch_case", "while_loop")
    },
    **{
        name: f"argosy.static.layers:{name}"
        for name in (
            "batch_norm", "bilinear_tensor_product", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose",
            "deform_conv2d", "embedding", "fc", "group_norm", "instance_norm", "layer_norm", "prelu", "row_conv",
            "spectral_norm",
        )
    },
    **{
        name: f"argosy.static.absent:{name}"
        for name in (
            "nce", "sequence_conv", "sequence_expand", "sequence_first_step", "sequence_last_step", "sequence_pool",
            "sequence_softmax", "sparse_embedding",
        )
    },
    "py_func": "argosy.static.python_functions:py_func",
}  # fmt: skip

__getattr__, __dir__ = face(__name__, _TABLE, globals())
