"""Fourier transforms: lines of numbers transformed side by side, one in each lane of a vector.

`rewrite` (transforms over axes as steps along lines), `lengths` (any length by those that have steps),
`convolution` (lengths with large prime factors), `kernel` (what a
step is to a plan), `factors` (passes of a length), `roots` (twiddle factors), `butterfly` (transforms in registers),
`squares` (whole lines there), `places` (numbers in memory), `passes` (transforms of lines in a cache), `halves` (real
lines by complex ones of half the length), `emit` (a step's code).
"""
