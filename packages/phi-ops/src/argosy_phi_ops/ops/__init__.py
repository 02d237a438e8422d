"""The operators, one module for each family; :mod:`argosy_phi_ops.declare.index` says which module has which."""
