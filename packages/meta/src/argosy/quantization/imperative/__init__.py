"""Quantisation as Paddle 2 configures it: ``ImperativePTQ`` of a trained model, ``ImperativeQuantAware`` in training.

:class:`argosy.quantization.PTQ` and ``QAT`` with a ``QuantConfig`` do the same for single layers and quanters of one's own.
"""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())
