"""Written by ``python -m argosy.api.stubs``."""

from argosy.nn.adaptive_softmax import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss
from argosy.nn.loss import BCELoss as BCELoss
from argosy.nn.loss import BCEWithLogitsLoss as BCEWithLogitsLoss
from argosy.nn.loss import CTCLoss as CTCLoss
from argosy.nn.loss import CosineEmbeddingLoss as CosineEmbeddingLoss
from argosy.nn.loss import CrossEntropyLoss as CrossEntropyLoss
from argosy.nn.loss import GaussianNLLLoss as GaussianNLLLoss
from argosy.nn.loss import HSigmoidLoss as HSigmoidLoss
from argosy.nn.loss import HingeEmbeddingLoss as HingeEmbeddingLoss
from argosy.nn.loss import KLDivLoss as KLDivLoss
from argosy.nn.loss import L1Loss as L1Loss
from argosy.nn.loss import MSELoss as MSELoss
from argosy.nn.loss import MarginRankingLoss as MarginRankingLoss
from argosy.nn.loss import MultiLabelMarginLoss as MultiLabelMarginLoss
from argosy.nn.loss import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from argosy.nn.loss import MultiMarginLoss as MultiMarginLoss
from argosy.nn.loss import NLLLoss as NLLLoss
from argosy.nn.loss import PoissonNLLLoss as PoissonNLLLoss
from argosy.nn.loss import RNNTLoss as RNNTLoss
from argosy.nn.loss import SmoothL1Loss as SmoothL1Loss
from argosy.nn.loss import SoftMarginLoss as SoftMarginLoss
from argosy.nn.loss import TripletMarginLoss as TripletMarginLoss
from argosy.nn.loss import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
