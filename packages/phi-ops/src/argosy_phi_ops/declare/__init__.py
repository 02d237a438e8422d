"""Declarations: an operator, what it takes, how its operands are promoted, its decomposition, and the table of all."""
