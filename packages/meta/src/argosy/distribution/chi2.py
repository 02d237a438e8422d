"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any

from argosy.distribution.gamma import Gamma
from argosy.distribution.parameters import is_known_false, parameters

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The sum of the squares of ``df`` standard normal variables: Gamma(df / 2, 1/2).

    Raises ``ValueError`` unless df > 0.
    """

    def __init__(self, df: Any) -> None:
        (self.df,) = parameters("Chi2", df=df)
        if is_known_false(self.df > 0):
            raise ValueError("Chi2: df must be positive")
        super().__init__(self.df * 0.5, 0.5)
