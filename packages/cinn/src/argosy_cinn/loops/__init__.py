"""Loop nests of memory-bound work: index arithmetic, expressions, grids, and their printing as vector code."""
