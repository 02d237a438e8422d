"""Errors of inference."""


class ProgramFileError(ValueError):
    """A saved program or its weights are missing, damaged or do not fit each other."""


class IncrementalError(ValueError):
    """A program mixes positions in a way that incremental decoding cannot carry over."""


class InputError(ValueError, KeyError):
    """A predictor was given inputs that its program does not have, or of a shape or dtype that do not fit."""

    __str__ = ValueError.__str__
