"""Attention over a paged cache, as a kernel of its own: its bounds of loops are data."""
