"""Written by ``python -m argosy.api.stubs``."""

from argosy.science.nans import first_nan as first_nan
from argosy.science.implicit import fixed_point as fixed_point
from argosy.science.least_squares import levenberg_marquardt as levenberg_marquardt
from argosy.science.implicit import linear_solve as linear_solve
from argosy.science.ode import odeint as odeint
from argosy.science.implicit import root as root
from argosy.science.loops import scan as scan
