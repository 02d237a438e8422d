"""Checks of what operators are given (indices, values, memory), eagerly and in programs, and what is said of errors."""
