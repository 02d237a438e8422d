"""Checks of indices: as steps of a plan, as code, and as the errors of calls."""
