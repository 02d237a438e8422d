"""Written by ``python -m argosy.api.stubs``."""

from argosy.vision.datasets.cifar import Cifar10 as Cifar10
from argosy.vision.datasets.cifar import Cifar100 as Cifar100
from argosy.vision.datasets.folder import DatasetFolder as DatasetFolder
from argosy.vision.datasets.mnist import FashionMNIST as FashionMNIST
from argosy.vision.datasets.archives import Flowers as Flowers
from argosy.vision.datasets.folder import ImageFolder as ImageFolder
from argosy.vision.datasets.mnist import MNIST as MNIST
from argosy.vision.datasets.archives import VOC2012 as VOC2012
