"""The transforms; :mod:`argosy.distribution.transform` has all of them."""
