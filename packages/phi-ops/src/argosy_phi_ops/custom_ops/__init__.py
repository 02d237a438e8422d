"""Operators that users declare: a body on numpy arrays or on tensors, a type rule and a gradient. See
:func:`~argosy_phi_ops.custom_ops.declaration.custom_op`."""
