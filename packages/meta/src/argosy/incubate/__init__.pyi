"""Written by ``python -m argosy.api.stubs``."""

from argosy.incubate.optimizer.lookahead import LookAhead as LookAhead
from argosy.incubate.optimizer.modelaverage import ModelAverage as ModelAverage
from argosy.incubate import asp as asp
from argosy.incubate import autograd as autograd
from argosy.incubate import autotune as autotune
from argosy.incubate import distributed as distributed
from argosy.incubate.graphs import graph_reindex as graph_reindex
from argosy.incubate.graphs import graph_sample_neighbors as graph_sample_neighbors
from argosy.incubate.graphs import graph_send_recv as graph_send_recv
from argosy.incubate.functions import identity_loss as identity_loss
from argosy.incubate import nn as nn
from argosy.incubate import optimizer as optimizer
from argosy.geometric.messages import segment_max as segment_max
from argosy.geometric.messages import segment_mean as segment_mean
from argosy.geometric.messages import segment_min as segment_min
from argosy.geometric.messages import segment_sum as segment_sum
from argosy.incubate.functions import softmax_mask_fuse as softmax_mask_fuse
from argosy.incubate.functions import softmax_mask_fuse_upper_triangle as softmax_mask_fuse_upper_triangle
from argosy.incubate import tensor as tensor
