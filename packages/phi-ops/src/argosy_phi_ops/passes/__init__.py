"""Passes over programs of operators and primitives."""
