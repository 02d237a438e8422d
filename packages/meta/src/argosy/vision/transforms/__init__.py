"""Transforms of pictures: the face of ``argosy.vision.transforms``."""

from argosy.faces import face

_MODULES = {
    "base": ("BaseTransform", "Compose"),
    "geometry": (
        "CenterCrop", "Pad", "RandomAffine", "RandomCrop", "RandomHorizontalFlip", "RandomPerspective",
        "RandomResizedCrop", "RandomRotation", "RandomVerticalFlip", "Resize",
    ),
    "colour": (
        "BrightnessTransform", "ColorJitter", "ContrastTransform", "Grayscale", "HueTransform", "Normalize",
        "RandomErasing", "SaturationTransform", "ToTensor", "Transpose",
    ),
    "functional": (
        "adjust_brightness", "adjust_contrast", "adjust_hue", "affine", "center_crop", "crop", "erase", "hflip",
        "normalize", "pad", "perspective", "resize", "rotate", "to_grayscale", "to_tensor", "vflip",
    ),
}  # fmt: skip
_TABLE = {name: f"argosy.vision.transforms.{module}:{name}" for module, names in _MODULES.items() for name in names}
_TABLE |= {"functional": "argosy.vision.transforms.functional"}

__getattr__, __dir__ = face(__name__, _TABLE, globals())
