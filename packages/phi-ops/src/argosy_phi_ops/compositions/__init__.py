"""Functions composed of operators, one module for each family; see :mod:`argosy_phi_ops.declare.composition`."""
