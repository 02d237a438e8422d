"""Data sets of pictures, from local files: the face of ``argosy.vision.datasets``."""

from argosy.faces import face

_MODULES = {
    "archives": ("Flowers", "VOC2012"),
    "cifar": ("Cifar10", "Cifar100"),
    "folder": ("DatasetFolder", "ImageFolder"),
    "mnist": ("MNIST", "FashionMNIST"),
}
_TABLE = {name: f"argosy.vision.datasets.{module}:{name}" for module, names in _MODULES.items() for name in names}

__getattr__, __dir__ = face(__name__, _TABLE, globals())
