"""Written by ``python -m argosy.api.stubs``."""

from argosy.nn.adaptive_pooling import AdaptiveAvgPool1D as AdaptiveAvgPool1D
from argosy.nn.adaptive_pooling import AdaptiveAvgPool2D as AdaptiveAvgPool2D
from argosy.nn.adaptive_pooling import AdaptiveAvgPool3D as AdaptiveAvgPool3D
from argosy.nn.adaptive_softmax import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss
from argosy.nn.adaptive_pooling import AdaptiveMaxPool1D as AdaptiveMaxPool1D
from argosy.nn.adaptive_pooling import AdaptiveMaxPool1D as _own_AdaptiveMaxPool1d
from argosy.nn.adaptive_pooling import AdaptiveMaxPool2D as AdaptiveMaxPool2D
from argosy.nn.adaptive_pooling import AdaptiveMaxPool2D as _own_AdaptiveMaxPool2d
from argosy.nn.adaptive_pooling import AdaptiveMaxPool3D as AdaptiveMaxPool3D
from argosy.nn.adaptive_pooling import AdaptiveMaxPool3D as _own_AdaptiveMaxPool3d
from argosy.nn.dropout import AlphaDropout as AlphaDropout
from argosy.nn.pooling import AvgPool1D as AvgPool1D
from argosy.nn.pooling import AvgPool2D as AvgPool2D
from argosy.nn.pooling import AvgPool3D as AvgPool3D
from argosy.nn.loss import BCELoss as BCELoss
from argosy.nn.loss import BCEWithLogitsLoss as BCEWithLogitsLoss
from argosy.nn.batch_norm import BatchNorm as BatchNorm
from argosy.nn.batch_norm import BatchNorm1D as BatchNorm1D
from argosy.nn.batch_norm import BatchNorm2D as BatchNorm2D
from argosy.nn.batch_norm import BatchNorm3D as BatchNorm3D
from argosy.nn.decode import BeamSearchDecoder as BeamSearchDecoder
from argosy.nn.recurrent import BiRNN as BiRNN
from argosy.nn.geometry import Bilinear as Bilinear
from argosy.nn.activation import CELU as CELU
from argosy.nn.loss import CTCLoss as CTCLoss
from argosy.nn.geometry import ChannelShuffle as ChannelShuffle
from argosy.nn.padding import CircularPad1D as CircularPad1D
from argosy.nn.padding import CircularPad1D as _own_CircularPad1d
from argosy.nn.padding import CircularPad2D as CircularPad2D
from argosy.nn.padding import CircularPad2D as _own_CircularPad2d
from argosy.nn.padding import CircularPad3D as CircularPad3D
from argosy.nn.padding import CircularPad3D as _own_CircularPad3d
from argosy.nn.clip import ClipGradByGlobalNorm as ClipGradByGlobalNorm
from argosy.nn.clip import ClipGradByNorm as ClipGradByNorm
from argosy.nn.clip import ClipGradByValue as ClipGradByValue
from argosy.nn.padding import ConstantPad1D as ConstantPad1D
from argosy.nn.padding import ConstantPad1D as _own_ConstantPad1d
from argosy.nn.padding import ConstantPad2D as ConstantPad2D
from argosy.nn.padding import ConstantPad2D as _own_ConstantPad2d
from argosy.nn.padding import ConstantPad3D as ConstantPad3D
from argosy.nn.padding import ConstantPad3D as _own_ConstantPad3d
from argosy.nn.conv import Conv1D as Conv1D
from argosy.nn.conv import Conv1DTranspose as Conv1DTranspose
from argosy.nn.conv import Conv1D as _own_Conv1d
from argosy.nn.conv import Conv2D as Conv2D
from argosy.nn.conv import Conv2DTranspose as Conv2DTranspose
from argosy.nn.conv import Conv2D as _own_Conv2d
from argosy.nn.conv import Conv3D as Conv3D
from argosy.nn.conv import Conv3DTranspose as Conv3DTranspose
from argosy.nn.conv import Conv3D as _own_Conv3d
from argosy.nn.loss import CosineEmbeddingLoss as CosineEmbeddingLoss
from argosy.nn.geometry import CosineSimilarity as CosineSimilarity
from argosy.nn.loss import CrossEntropyLoss as CrossEntropyLoss
from argosy.nn.dropout import Dropout as Dropout
from argosy.nn.dropout import Dropout2D as Dropout2D
from argosy.nn.dropout import Dropout3D as Dropout3D
from argosy.nn.activation import ELU as ELU
from argosy.nn.common import Embedding as Embedding
from argosy.nn.dropout import FeatureAlphaDropout as FeatureAlphaDropout
from argosy.nn.common import Flatten as Flatten
from argosy.nn.geometry import Fold as Fold
from argosy.nn.unpooling import FractionalMaxPool2D as FractionalMaxPool2D
from argosy.nn.unpooling import FractionalMaxPool3D as FractionalMaxPool3D
from argosy.nn.activation import GELU as GELU
from argosy.nn.activation import GLU as GLU
from argosy.nn.recurrent import GRU as GRU
from argosy.nn.cells import GRUCell as GRUCell
from argosy.nn.loss import GaussianNLLLoss as GaussianNLLLoss
from argosy.nn.channel_norm import GroupNorm as GroupNorm
from argosy.nn.loss import HSigmoidLoss as HSigmoidLoss
from argosy.nn.activation import Hardshrink as Hardshrink
from argosy.nn.activation import Hardsigmoid as Hardsigmoid
from argosy.nn.activation import Hardswish as Hardswish
from argosy.nn.activation import Hardtanh as Hardtanh
from argosy.nn.loss import HingeEmbeddingLoss as HingeEmbeddingLoss
from argosy.nn.common import Identity as Identity
from argosy.nn.channel_norm import InstanceNorm1D as InstanceNorm1D
from argosy.nn.channel_norm import InstanceNorm2D as InstanceNorm2D
from argosy.nn.channel_norm import InstanceNorm3D as InstanceNorm3D
from argosy.nn.loss import KLDivLoss as KLDivLoss
from argosy.nn.loss import L1Loss as L1Loss
from argosy.nn.pooling import LPPool1D as LPPool1D
from argosy.nn.pooling import LPPool1D as _own_LPPool1d
from argosy.nn.pooling import LPPool2D as LPPool2D
from argosy.nn.pooling import LPPool2D as _own_LPPool2d
from argosy.nn.recurrent import LSTM as LSTM
from argosy.nn.cells import LSTMCell as LSTMCell
from argosy.nn.layer.layers import Layer as Layer
from argosy.nn.container import LayerDict as LayerDict
from argosy.nn.container import LayerList as LayerList
from argosy.nn.norm import LayerNorm as LayerNorm
from argosy.nn.activation import LeakyReLU as LeakyReLU
from argosy.nn.common import Linear as Linear
from argosy.nn.channel_norm import LocalResponseNorm as LocalResponseNorm
from argosy.nn.activation import LogSigmoid as LogSigmoid
from argosy.nn.activation import LogSoftmax as LogSoftmax
from argosy.nn.loss import MSELoss as MSELoss
from argosy.nn.loss import MarginRankingLoss as MarginRankingLoss
from argosy.nn.pooling import MaxPool1D as MaxPool1D
from argosy.nn.pooling import MaxPool2D as MaxPool2D
from argosy.nn.pooling import MaxPool3D as MaxPool3D
from argosy.nn.unpooling import MaxUnPool1D as MaxUnPool1D
from argosy.nn.unpooling import MaxUnPool2D as MaxUnPool2D
from argosy.nn.unpooling import MaxUnPool3D as MaxUnPool3D
from argosy.nn.activation import Maxout as Maxout
from argosy.nn.activation import Mish as Mish
from argosy.nn.layer.layers import Layer as _own_Module
from argosy.nn.container import LayerDict as _own_ModuleDict
from argosy.nn.container import LayerList as _own_ModuleList
from argosy.nn.attention import MultiHeadAttention as MultiHeadAttention
from argosy.nn.loss import MultiLabelMarginLoss as MultiLabelMarginLoss
from argosy.nn.loss import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from argosy.nn.loss import MultiMarginLoss as MultiMarginLoss
from argosy.nn.loss import NLLLoss as NLLLoss
from argosy.nn.activation import PReLU as PReLU
from argosy.nn.padding import Pad1D as Pad1D
from argosy.nn.padding import Pad2D as Pad2D
from argosy.nn.padding import Pad3D as Pad3D
from argosy.nn.geometry import PairwiseDistance as PairwiseDistance
from argosy.nn.parameter import Parameter as Parameter
from argosy.nn.container import ParameterDict as ParameterDict
from argosy.nn.container import ParameterList as ParameterList
from argosy.nn.geometry import PixelShuffle as PixelShuffle
from argosy.nn.geometry import PixelUnshuffle as PixelUnshuffle
from argosy.nn.loss import PoissonNLLLoss as PoissonNLLLoss
from argosy.nn.norm import RMSNorm as RMSNorm
from argosy.nn.recurrent import RNN as RNN
from argosy.nn.cells import RNNCellBase as RNNCellBase
from argosy.nn.loss import RNNTLoss as RNNTLoss
from argosy.nn.activation import RReLU as RReLU
from argosy.nn.activation import ReLU as ReLU
from argosy.nn.activation import ReLU6 as ReLU6
from argosy.nn.padding import ReflectionPad1D as ReflectionPad1D
from argosy.nn.padding import ReflectionPad1D as _own_ReflectionPad1d
from argosy.nn.padding import ReflectionPad2D as ReflectionPad2D
from argosy.nn.padding import ReflectionPad2D as _own_ReflectionPad2d
from argosy.nn.padding import ReflectionPad3D as ReflectionPad3D
from argosy.nn.padding import ReflectionPad3D as _own_ReflectionPad3d
from argosy.nn.padding import ReplicationPad1D as ReplicationPad1D
from argosy.nn.padding import ReplicationPad1D as _own_ReplicationPad1d
from argosy.nn.padding import ReplicationPad2D as ReplicationPad2D
from argosy.nn.padding import ReplicationPad2D as _own_ReplicationPad2d
from argosy.nn.padding import ReplicationPad3D as ReplicationPad3D
from argosy.nn.padding import ReplicationPad3D as _own_ReplicationPad3d
from argosy.nn.activation import SELU as SELU
from argosy.nn.container import Sequential as Sequential
from argosy.nn.activation import Silu as _own_SiLU
from argosy.nn.activation import Sigmoid as Sigmoid
from argosy.nn.activation import Silu as Silu
from argosy.nn.recurrent import SimpleRNN as SimpleRNN
from argosy.nn.cells import SimpleRNNCell as SimpleRNNCell
from argosy.nn.loss import SmoothL1Loss as SmoothL1Loss
from argosy.nn.loss import SoftMarginLoss as SoftMarginLoss
from argosy.nn.activation import Softmax as Softmax
from argosy.nn.activation import Softmax2D as Softmax2D
from argosy.nn.activation import Softplus as Softplus
from argosy.nn.activation import Softshrink as Softshrink
from argosy.nn.activation import Softsign as Softsign
from argosy.nn.channel_norm import SpectralNorm as SpectralNorm
from argosy.nn.activation import Swish as Swish
from argosy.nn.batch_norm import SyncBatchNorm as SyncBatchNorm
from argosy.nn.activation import Tanh as Tanh
from argosy.nn.activation import Tanhshrink as Tanhshrink
from argosy.nn.activation import ThresholdedReLU as ThresholdedReLU
from argosy.nn.transformer import Transformer as Transformer
from argosy.nn.transformer import TransformerDecoder as TransformerDecoder
from argosy.nn.transformer import TransformerDecoderLayer as TransformerDecoderLayer
from argosy.nn.transformer import TransformerEncoder as TransformerEncoder
from argosy.nn.transformer import TransformerEncoderLayer as TransformerEncoderLayer
from argosy.nn.loss import TripletMarginLoss as TripletMarginLoss
from argosy.nn.loss import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
from argosy.nn.geometry import Unflatten as Unflatten
from argosy.nn.geometry import Unfold as Unfold
from argosy.nn.geometry import Upsample as Upsample
from argosy.nn.geometry import UpsamplingBilinear2D as UpsamplingBilinear2D
from argosy.nn.geometry import UpsamplingNearest2D as UpsamplingNearest2D
from argosy.nn.padding import ZeroPad1D as ZeroPad1D
from argosy.nn.padding import ZeroPad2D as ZeroPad2D
from argosy.nn.padding import ZeroPad3D as ZeroPad3D
from argosy.nn import attention as attention
from argosy.nn import decode as decode
from argosy.nn.decode import dynamic_decode as dynamic_decode
from argosy.nn import functional as functional
from argosy.nn import init as init
from argosy.nn import initializer as initializer
from argosy.nn import layer as layer
from argosy.nn import loss as loss
from argosy.nn import quant as quant
from argosy.nn import utils as utils
AdaptiveMaxPool1d = _own_AdaptiveMaxPool1d
AdaptiveMaxPool2d = _own_AdaptiveMaxPool2d
AdaptiveMaxPool3d = _own_AdaptiveMaxPool3d
CircularPad1d = _own_CircularPad1d
CircularPad2d = _own_CircularPad2d
CircularPad3d = _own_CircularPad3d
ConstantPad1d = _own_ConstantPad1d
ConstantPad2d = _own_ConstantPad2d
ConstantPad3d = _own_ConstantPad3d
Conv1d = _own_Conv1d
Conv2d = _own_Conv2d
Conv3d = _own_Conv3d
LPPool1d = _own_LPPool1d
LPPool2d = _own_LPPool2d
Module = _own_Module
ModuleDict = _own_ModuleDict
ModuleList = _own_ModuleList
ReflectionPad1d = _own_ReflectionPad1d
ReflectionPad2d = _own_ReflectionPad2d
ReflectionPad3d = _own_ReflectionPad3d
ReplicationPad1d = _own_ReplicationPad1d
ReplicationPad2d = _own_ReplicationPad2d
ReplicationPad3d = _own_ReplicationPad3d
SiLU = _own_SiLU
