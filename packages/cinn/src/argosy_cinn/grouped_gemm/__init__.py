"""Products of groups of rows whose sizes are data, as problems of `contraction`."""
