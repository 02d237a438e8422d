"""What must be in place before the first tensor is made: operators bound to ``Tensor``, and the gradient tape.

Faces import this module with the first name that makes or takes tensors; ``import argosy`` alone does not.
"""

from __future__ import annotations

import argosy_autograd  # noqa: F401  (installs the gradient recorder and Tensor's gradient methods)
from argosy.api import SHOWN
from argosy.tracebacks import install
from argosy_phi_ops import extension
from argosy_phi_ops.methods import find
from argosy_tensorcore.tensor import Tensor

__all__ = ["Tensor", "find"]

Tensor.__module__ = SHOWN.framework  # where users take it from; its text and pickles name that

install()
extension.register_native("argosy_cinn.eager.build:native_build")

# What every tensor can be asked; the package that answers is loaded with the first question.
extension.register_methods(
    {
        **{name: f"argosy_autoparallel.dist_tensor:{name}" for name in ("is_dist", "placements", "process_mesh")},
        **{name: f"argosy.nn.lazy:{name}" for name in ("initialize", "set_init_func")},
        **{name: f"argosy.signal:{name}" for name in ("istft", "stft")},
        **{name: f"argosy.sparse.creation:{name}" for name in ("to_sparse_coo", "to_sparse_csr")},
        "__array_namespace__": "argosy.array_api:namespace_of",
        "_repr_html_": "argosy.notebook.pages:tensor_html",
        "to_device": "argosy.array_api:to_device",
        "create_parameter": "argosy.framework.creation:create_parameter",
        "create_tensor": "argosy.framework.typed_creation:create_tensor",
        "softmax": "argosy.compat.nn.functional:softmax",
    }
)
