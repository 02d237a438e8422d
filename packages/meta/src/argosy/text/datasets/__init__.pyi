"""Written by ``python -m argosy.api.stubs``."""

from argosy.text.datasets.conll05 import Conll05st as Conll05st
from argosy.text.datasets.imdb import Imdb as Imdb
from argosy.text.datasets.imikolov import Imikolov as Imikolov
from argosy.text.datasets.movielens import Movielens as Movielens
from argosy.text.datasets.uci_housing import UCIHousing as UCIHousing
from argosy.text.datasets.translation import WMT14 as WMT14
from argosy.text.datasets.translation import WMT16 as WMT16
