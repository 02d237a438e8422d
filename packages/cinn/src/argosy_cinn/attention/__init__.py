"""Fused attention: products whose result is larger than their operands, what is computed from it element by element
and along its rows, and the products that contract it again, as one kernel in memory linear in the sequence.

In the order a program passes through them: `regions` (what belongs together), `lowering` (to a form), `operands`
(matrices over memory), `bounds` (which columns a row can see at all), `tiles` (rows that are computed together, and
their buffers), `emit` and `sweep` (the code).
"""
