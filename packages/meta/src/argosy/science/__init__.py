"""Tools for science on top of differentiable programs: the face of ``argosy.science``."""

from argosy.faces import face

_TABLE = {
    "first_nan": "argosy.science.nans:first_nan",
    "fixed_point": "argosy.science.implicit:fixed_point",
    "levenberg_marquardt": "argosy.science.least_squares:levenberg_marquardt",
    "linear_solve": "argosy.science.implicit:linear_solve",
    "odeint": "argosy.science.ode:odeint",
    "root": "argosy.science.implicit:root",
    "scan": "argosy.science.loops:scan",
}

__getattr__, __dir__ = face(__name__, _TABLE, globals())
