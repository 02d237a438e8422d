"""Functions of operators that take richer calls than an operator does."""

import argosy.runtime  # noqa: F401  (operators and the tape come with the first tensor)
from argosy_phi_ops.selection import masked_select, nonzero, one_hot, sequence_mask, where

__all__ = ["masked_select", "nonzero", "one_hot", "sequence_mask", "where"]
