"""Passes: one rank's program of a program on global tensors, and few collectives in it."""
