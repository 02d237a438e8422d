"""Passes of automatic differentiation."""
