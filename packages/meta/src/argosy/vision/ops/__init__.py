"""Operators of detection: the face of ``argosy.vision.ops``."""

from argosy.faces import face

_MODULES = {
    "ops.boxes": ("box_coder", "distribute_fpn_proposals", "nms", "prior_box", "yolo_box"),
    "ops.deformable": ("DeformConv2D", "deform_conv2d"),
    "ops.files": ("decode_jpeg", "read_file"),
    "ops.proposals": ("generate_proposals", "matrix_nms"),
    "ops.yolo": ("yolo_loss",),
    "ops.regions": ("PSRoIPool", "RoIAlign", "RoIPool", "psroi_pool", "roi_align", "roi_pool"),
    "models.blocks": ("ConvNormActivation",),
}
_TABLE = {name: f"argosy.vision.{module}:{name}" for module, names in _MODULES.items() for name in names}

__getattr__, __dir__ = face(__name__, _TABLE, globals())
