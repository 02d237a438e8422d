"""Written by ``python -m argosy.api.stubs``."""

from argosy.incubate.asp.masks import CheckMethod as CheckMethod
from argosy.incubate.asp.masks import MaskAlgo as MaskAlgo
from argosy.incubate.asp.pruning import add_supported_layer as add_supported_layer
from argosy.incubate.asp.masks import calculate_density as calculate_density
from argosy.incubate.asp.masks import check_mask_1d as check_mask_1d
from argosy.incubate.asp.masks import check_mask_2d as check_mask_2d
from argosy.incubate.asp.masks import check_sparsity as check_sparsity
from argosy.incubate.asp.masks import create_mask as create_mask
from argosy.incubate.asp.pruning import decorate as decorate
from argosy.incubate.asp.masks import get_mask_1d as get_mask_1d
from argosy.incubate.asp.masks import get_mask_2d_best as get_mask_2d_best
from argosy.incubate.asp.masks import get_mask_2d_greedy as get_mask_2d_greedy
from argosy.incubate.asp.pruning import prune_model as prune_model
from argosy.incubate.asp.pruning import reset_excluded_layers as reset_excluded_layers
from argosy.incubate.asp.pruning import set_excluded_layers as set_excluded_layers
