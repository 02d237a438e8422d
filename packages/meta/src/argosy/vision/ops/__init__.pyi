"""Written by ``python -m argosy.api.stubs``."""

from argosy.vision.models.blocks import ConvNormActivation as ConvNormActivation
from argosy.vision.ops.deformable_convolution import DeformConv2D as DeformConv2D
from argosy.vision.ops.regions import PSRoIPool as PSRoIPool
from argosy.vision.ops.regions import RoIAlign as RoIAlign
from argosy.vision.ops.regions import RoIPool as RoIPool
from argosy.vision.ops.boxes import box_coder as box_coder
from argosy.vision.ops.files import decode_jpeg as decode_jpeg
from argosy.vision.ops.deformable_convolution import deform_conv2d as deform_conv2d
from argosy.vision.ops.boxes import distribute_fpn_proposals as distribute_fpn_proposals
from argosy.vision.ops.proposals import generate_proposals as generate_proposals
from argosy.vision.ops.proposals import matrix_nms as matrix_nms
from argosy.vision.ops.boxes import nms as nms
from argosy.vision.ops.boxes import prior_box as prior_box
from argosy.vision.ops.regions import psroi_pool as psroi_pool
from argosy.vision.ops.files import read_file as read_file
from argosy.vision.ops.regions import roi_align as roi_align
from argosy.vision.ops.regions import roi_pool as roi_pool
from argosy.vision.ops.boxes import yolo_box as yolo_box
from argosy.vision.ops.yolo import yolo_loss as yolo_loss
