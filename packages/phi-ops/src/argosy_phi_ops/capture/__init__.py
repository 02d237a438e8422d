"""Capture: Python run under a tracer becomes a program; what traced tensors hold, regions, views and masks."""
