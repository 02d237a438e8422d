"""Sorting: every sort is a stable order of positions, found by radix or by rank, and elements looked up by it.

`rewrite` (sorts as ``cinn.order`` and gathers), `lowering` (to forms), `emit` (rows and keys), `radix` (one
row).
"""
