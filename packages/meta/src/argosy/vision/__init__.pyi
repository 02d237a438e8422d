"""Written by ``python -m argosy.api.stubs``."""

from argosy.vision import datasets as datasets
from argosy.vision.image import get_image_backend as get_image_backend
from argosy.vision.image import image_load as image_load
from argosy.vision import models as models
from argosy.vision import ops as ops
from argosy.vision.image import set_image_backend as set_image_backend
from argosy.vision import transforms as transforms
