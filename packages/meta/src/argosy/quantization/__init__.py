"""Quantisation: training that simulates it in floats (``QAT``), and calibration of trained models (``PTQ``).

A ``QuantConfig`` says which layers get which quanter or observer; ``quantize`` puts them in, ``convert`` makes
``LinearQuanter`` and ``LinearDequanter`` of what they found. Linear layers and convolutions then multiply integers, and
``jit.save`` exports their weights in bytes.
"""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())
