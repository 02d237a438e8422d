"""Written by ``python -m argosy.api.stubs``."""

from argosy_autograd.pylayer import PyLayer as _own_Function
from argosy_autograd.pylayer import PyLayer as PyLayer
from argosy_autograd.pylayer import PyLayerContext as PyLayerContext
from argosy_autograd.engine import backward as backward
from argosy_autograd.differential import biharmonic as biharmonic
from argosy_autograd.differential import curl as curl
from argosy_autograd.custom_derivatives import custom_jvp as custom_jvp
from argosy_autograd.custom_derivatives import custom_vjp as custom_vjp
from argosy_autograd.anomaly import detect_anomaly as detect_anomaly
from argosy_autograd.differential import divergence as divergence
from argosy_autograd.modes import enable_grad as enable_grad
from argosy_autograd.engine import grad as grad
from argosy_autograd.functional import hessian as hessian
from argosy_autograd.modes import is_grad_enabled as is_grad_enabled
from argosy_autograd.functional import jacobian as jacobian
from argosy_autograd.jets import jet as jet
from argosy_autograd.differential import laplacian as laplacian
from argosy_autograd.differential import linear_operator as linear_operator
from argosy_autograd.modes import no_grad as no_grad
from argosy_autograd.hooks import saved_tensors_hooks as saved_tensors_hooks
from argosy_autograd.anomaly import set_detect_anomaly as set_detect_anomaly
from argosy_autograd.modes import set_grad_enabled as set_grad_enabled
Function = _own_Function
