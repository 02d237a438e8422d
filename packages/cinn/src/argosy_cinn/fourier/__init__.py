"""Fourier transforms: lines of numbers transformed side by side, one in each lane of a vector.

`rewrite` (transforms over axes as steps along lines), `lengths` (any length by those that have steps),
`convolution` (lengths with large prime factors), `lowering` (to forms), `groups` (lines side by side, and chunks),
`factors` (passes of a length), `roots` (twiddle factors), `butterfly` (transforms in registers), `square_lines` (whole
lines there), `memory` (numbers in memory), `passes` (transforms of lines in a cache), `real_lines` (by complex ones of
half the length), `emit` (a step's code).
"""
