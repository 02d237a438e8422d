"""Taylor mode: derivatives of any order by propagating coefficients of truncated multivariate Taylor polynomials.

A value ``v`` of a program, seen as a function of small displacements along some directions, has coefficients
``v_a = (d^a v) / a!`` for multi-indices ``a``. Every primitive maps the coefficients of its operands to those of its
results, so that one sweep forwards gives all derivatives that are asked for, at a cost that is polynomial in the order
(Griewank and Walther, Evaluating Derivatives, 2008, chapter 13). What is asked for is a linear functional of
coefficients: the highest ones enter linearly everywhere, so a sum of them, such as a Laplacian, travels as one value
(Li et al., Forward Laplacian, 2024; Dangel et al., Collapsing Taylor Mode AD, 2025).
"""

from argosy_autograd.taylor.functional import Functional, derivative
from argosy_autograd.taylor.rows import RowAxes
from argosy_autograd.taylor.sweep import Sweep

__all__ = ["Functional", "RowAxes", "Sweep", "derivative"]
