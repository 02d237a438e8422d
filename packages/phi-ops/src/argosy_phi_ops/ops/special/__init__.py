"""Special functions, by the names of scipy.special."""
