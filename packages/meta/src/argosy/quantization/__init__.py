"""Quantisation simulated in float: training aware of it (``QAT``), and calibration of trained models (``PTQ``).

A ``QuantConfig`` says which layers get which quanter or observer; ``quantize`` puts them in, ``convert`` makes
``LinearQuanter`` and ``LinearDequanter`` of what they found, which ``jit.save`` exports.
"""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())
