"""Large batches in tiles of rows that stay in a cache from their first operation to the last one.

`rows` (which operations go row by row, and which sum over rows), `rewrite` (these as a loop over tiles).
"""
