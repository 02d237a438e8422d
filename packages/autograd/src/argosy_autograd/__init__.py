"""Automatic differentiation for argosy: eager tape and program transforms from one rule per primitive.

Importing the package tells the operator library where the tape and the gradient methods of ``Tensor`` are; they load
on first use.
"""

from __future__ import annotations

from argosy_autograd.__about__ import __version__
from argosy_phi_ops.extension import register_methods, register_recorder

_LAZY = {
    "backward": "engine",
    "grad": "engine",
    "no_grad": "modes",
    "enable_grad": "modes",
    "set_grad_enabled": "modes",
    "is_grad_enabled": "modes",
    "inference_mode": "modes",
    "PyLayer": "pylayer",
    "PyLayerContext": "pylayer",
    "saved_tensors_hooks": "hooks",
    **dict.fromkeys(("detect_anomaly", "set_detect_anomaly"), "anomaly"),
    "register_hook": "hooks",
    "accumulate_grad": "gradients",
    "clear_gradient": "gradients",
    "zero_grad": "gradients",
    "symbolic_zero": "gradients",
    "is_symbolic_zero": "gradients",
    "jacobian": "functional",
    "hessian": "functional",
    "vjp": "functional",
    "jvp": "functional",
    **dict.fromkeys(("biharmonic", "curl", "divergence", "laplacian", "linear_operator"), "differential"),
    "jet": "jets",
    **dict.fromkeys(("custom_jvp", "custom_vjp"), "custom_derivatives"),
    "vjp_program": "transform",
    "jvp_program": "transform",
    "split_program": "split",
    "check_grads": "checks",
}
__all__ = ["__version__", *_LAZY]

register_recorder("argosy_autograd.tape:recorder")
register_methods(
    {
        name: f"argosy_autograd.methods:{name}"
        for name in ("backward", "clear_grad", "clear_gradient", "register_hook", "retain_grads")
    }
)


def __getattr__(name: str) -> object:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'argosy_autograd' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"argosy_autograd.{module}"), name)
    return value
