"""Eager execution: the bind point, applications of operators, their kernels, and what stops gradients."""
