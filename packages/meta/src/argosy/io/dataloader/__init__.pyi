"""Written by ``python -m argosy.api.stubs``."""

from argosy.io.sampler import BatchSampler as BatchSampler
from argosy.io.dataset import ConcatDataset as ConcatDataset
from argosy.io.dataloader.loader import DataLoader as DataLoader
from argosy.io.dataset import Dataset as Dataset
from argosy.io.sampler import DistributedBatchSampler as DistributedBatchSampler
from argosy.io.dataset import IterableDataset as IterableDataset
from argosy.io.sampler import RandomSampler as RandomSampler
from argosy.io.sampler import Sampler as Sampler
from argosy.io.sampler import SequenceSampler as SequenceSampler
from argosy.io.dataset import Subset as Subset
from argosy.io.dataset import TensorDataset as TensorDataset
from argosy.io.dataloader.worker import WorkerInfo as WorkerInfo
from argosy.io.dataloader.collate import default_collate_fn as default_collate_fn
from argosy.io.dataloader.collate import default_convert_fn as default_convert_fn
from argosy.io.dataloader.worker import get_worker_info as get_worker_info
from argosy.io.dataset import random_split as random_split
