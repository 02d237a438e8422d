"""Operators of your own: :func:`custom_op` declares one by a Python function.

::

    import argosy
    from argosy import Tensor
    from argosy.library import custom_op

    @custom_op("mylib.scale", axes="... -> ...")
    def scale(x: Tensor, factor: float = 2.0) -> Tensor:
        return x * factor  # numpy arrays: anything may happen here, a C function called through cffi, too

    @scale.gradient
    def _(g, result, x, factor):
        return g * factor  # tensors

See :func:`argosy_phi_ops.custom_ops.declaration.custom_op`.
"""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())
