"""Special functions: the operators that Paddle also keeps under ``paddle.special``, and those that it lacks."""

from argosy.faces import face, operator_function

_NAMES = frozenset({
    "digamma", "erf", "erfinv", "expm1", "gammainc", "gammaincc", "gammaln", "i0", "i0e", "i1", "i1e", "k0", "k0e",
    "k1", "k1e", "log1p", "logit", "logsumexp", "multigammaln", "polygamma", "round", "sinc", "zeta",
})  # fmt: skip


def _find(name: str) -> object | None:
    return operator_function(name) if name in _NAMES else None


_TABLE = {"softmax": "argosy.compat.nn.functional:softmax"}

__getattr__, __dir__ = face(__name__, _TABLE, globals(), _find)
