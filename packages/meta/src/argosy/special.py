"""Special functions: the operators that Paddle also keeps under ``paddle.special``, and those that it lacks."""

from argosy.faces import face, operators_named

_NAMES = (
    "digamma", "erf", "erfinv", "expm1", "gammainc", "gammaincc", "gammaln", "i0", "i0e", "i1", "i1e", "k0", "k0e",
    "k1", "k1e", "log1p", "logit", "logsumexp", "multigammaln", "polygamma", "round", "sinc", "zeta",
)  # fmt: skip


_TABLE = {"softmax": "argosy.compat.nn.functional:softmax"}

__getattr__, __dir__ = face(__name__, _TABLE, globals(), *operators_named(_NAMES))
