"""Paddle's module of recurrent layers, for code that takes layers from where Paddle defines them."""

from argosy.nn.cells import GRUCell, LSTMCell, RNNCellBase, SimpleRNNCell
from argosy.nn.recurrent import GRU, LSTM, RNN, BiRNN, SimpleRNN

__all__ = [
    "GRU", "LSTM", "RNN", "BiRNN", "GRUCell", "LSTMCell", "RNNCellBase", "SimpleRNN", "SimpleRNNCell",
]  # fmt: skip
