"""Quantisation as Paddle 2 configures it: ``ImperativePTQ`` of a trained model, ``ImperativeQuantAware`` in training.

:class:`argosy.quantization.PTQ` and ``QAT`` do the same by a ``QuantConfig``, for single layers and with quanters of
one's own, too.
"""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())
