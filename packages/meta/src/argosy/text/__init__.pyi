"""Written by ``python -m argosy.stubs``."""

from argosy.text.viterbi import ViterbiDecoder as ViterbiDecoder
from argosy.text.viterbi import viterbi_decode as viterbi_decode
