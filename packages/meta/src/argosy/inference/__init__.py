"""Serving as users of Paddle Inference write it: ``Config``, ``create_predictor``, handles of inputs and outputs.

It is ``argosy_infer``; the models are those of ``jit.save`` here, or of Paddle 3.
"""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())
