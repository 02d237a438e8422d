"""The part of ``paddle.static`` that makes sense without a global static mode."""

from argosy.faces import face

__getattr__, __dir__ = face(__name__, {"InputSpec": "argosy.jit.input_spec:InputSpec"}, globals())
