"""Errors of inference."""


class ProgramFileError(ValueError):
    """A saved program or its weights are missing, damaged or do not fit each other."""


class IncrementalError(ValueError):
    """A program mixes positions in a way that incremental decoding cannot carry over."""


class AdapterError(ValueError):
    """An adapter's files are damaged, or it does not fit the program."""


class LogitsError(ValueError):
    """Logits that no token can be chosen from: NaN, or nothing finite."""


class InputError(ValueError, KeyError):
    """A predictor was given inputs that its program does not have, or of a shape or dtype or with values that do not
    fit; or a generator tokens or positions that its model does not have."""

    __str__ = ValueError.__str__
