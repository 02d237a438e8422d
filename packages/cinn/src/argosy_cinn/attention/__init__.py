"""Fused attention: products whose result is larger than their operands, what is computed from it element by element
and along its rows, and the products that contract it again, as one kernel in memory linear in the sequence.

In the order a program passes through them: `regions` (what belongs together), `operands` (matrices over memory),
`tiles` (a group as expressions, phases and buffers), `bounds` (which columns a row can see at all), `emit` and
`sweep` (the code).
"""
