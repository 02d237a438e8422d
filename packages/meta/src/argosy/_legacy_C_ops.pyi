"""Written by ``python -m argosy.api.stubs``."""

from argosy.vision.ops.legacy_operators import argsort as argsort
from argosy.vision.ops.legacy_operators import box_coder as box_coder
from argosy.vision.ops.legacy_operators import distribute_fpn_proposals as distribute_fpn_proposals
from argosy.vision.ops.legacy_operators import fake_channel_wise_quantize_dequantize_abs_max as fake_channel_wise_quantize_dequantize_abs_max
from argosy.vision.ops.legacy_operators import generate_proposals_v2 as generate_proposals_v2
from argosy.vision.ops.legacy_operators import matrix_nms as matrix_nms
from argosy.vision.ops.legacy_operators import multiclass_nms3 as multiclass_nms3
