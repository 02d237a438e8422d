"""Face of automatic differentiation: everything lives in ``argosy_autograd``."""

from argosy.faces import face

_NAMES = (
    "PyLayer", "PyLayerContext", "backward", "biharmonic", "curl", "custom_jvp", "custom_vjp", "detect_anomaly",
    "divergence", "enable_grad", "grad", "hessian", "is_grad_enabled", "jacobian", "jet", "laplacian",
    "linear_operator", "no_grad", "saved_tensors_hooks", "set_detect_anomaly", "set_grad_enabled",
)  # fmt: skip

_TABLE = {name: f"argosy_autograd:{name}" for name in _NAMES}
_TABLE["Function"] = _TABLE["PyLayer"]

__getattr__, __dir__ = face(__name__, _TABLE, globals())
