"""Indexing: slices, masks, gathers, scatters, subscripts."""
