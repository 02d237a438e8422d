"""Written by ``python -m argosy.stubs``."""

from argosy_autograd import PyLayer as Function
from argosy_autograd import PyLayer as PyLayer
from argosy_autograd import PyLayerContext as PyLayerContext
from argosy_autograd import backward as backward
from argosy_autograd import biharmonic as biharmonic
from argosy_autograd import curl as curl
from argosy_autograd import custom_jvp as custom_jvp
from argosy_autograd import custom_vjp as custom_vjp
from argosy_autograd import detect_anomaly as detect_anomaly
from argosy_autograd import divergence as divergence
from argosy_autograd import enable_grad as enable_grad
from argosy_autograd import grad as grad
from argosy_autograd import hessian as hessian
from argosy_autograd import is_grad_enabled as is_grad_enabled
from argosy_autograd import jacobian as jacobian
from argosy_autograd import jet as jet
from argosy_autograd import laplacian as laplacian
from argosy_autograd import linear_operator as linear_operator
from argosy_autograd import no_grad as no_grad
from argosy_autograd import saved_tensors_hooks as saved_tensors_hooks
from argosy_autograd import set_detect_anomaly as set_detect_anomaly
from argosy_autograd import set_grad_enabled as set_grad_enabled
