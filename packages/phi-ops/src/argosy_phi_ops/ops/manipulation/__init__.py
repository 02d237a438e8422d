"""Manipulation of shapes, axes and copies of elements."""
