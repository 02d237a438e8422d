"""Probability distributions, transforms of them, and divergences between them."""

from argosy.faces import face

_MODULES = {
    "Bernoulli": "bernoulli", "Beta": "beta", "Binomial": "binomial", "Categorical": "categorical", "Cauchy": "cauchy",
    "Chi2": "chi2", "ContinuousBernoulli": "continuous_bernoulli", "Dirichlet": "dirichlet",
    "Distribution": "distribution", "Exponential": "exponential", "ExponentialFamily": "exponential_family",
    "Gamma": "gamma", "Geometric": "geometric", "Gumbel": "gumbel", "Independent": "independent",
    "LKJCholesky": "lkj_cholesky", "Laplace": "laplace", "LogNormal": "lognormal", "Multinomial": "multinomial",
    "MultivariateNormal": "multivariate_normal", "Normal": "normal", "Poisson": "poisson", "StudentT": "student_t",
    "TransformedDistribution": "transformed_distribution", "Uniform": "uniform", "kl_divergence": "kl",
    "register_kl": "kl",
}  # fmt: skip
_TRANSFORMS = (
    "AbsTransform", "AffineTransform", "ChainTransform", "ExpTransform", "IndependentTransform", "PowerTransform",
    "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform", "StackTransform", "StickBreakingTransform",
    "TanhTransform", "Transform",
)  # fmt: skip
_TABLE = {
    **{name: f"argosy.distribution.{module}:{name}" for name, module in _MODULES.items()},
    **{name: f"argosy.distribution.transform:{name}" for name in _TRANSFORMS},
    **{name: f"argosy.distribution.{name}" for name in ("constraint", "kl", "transform", "variable")},
}

__all__ = [*_MODULES, *_TRANSFORMS]
__getattr__, __dir__ = face(__name__, _TABLE, globals())
