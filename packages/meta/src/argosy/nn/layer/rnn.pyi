"""Written by ``python -m argosy.api.stubs``."""

from argosy.nn.recurrent import BiRNN as BiRNN
from argosy.nn.recurrent import GRU as GRU
from argosy.nn.cells import GRUCell as GRUCell
from argosy.nn.recurrent import LSTM as LSTM
from argosy.nn.cells import LSTMCell as LSTMCell
from argosy.nn.recurrent import RNN as RNN
from argosy.nn.cells import RNNCellBase as RNNCellBase
from argosy.nn.recurrent import SimpleRNN as SimpleRNN
from argosy.nn.cells import SimpleRNNCell as SimpleRNNCell
