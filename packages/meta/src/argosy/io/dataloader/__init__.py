"""Loading: batches put together here or in worker processes, which hand them over through shared memory."""

from argosy.faces import face

_MODULES = {
    "argosy.io.dataloader.loader": ("DataLoader",),
    "argosy.io.dataloader.collate": ("default_collate_fn", "default_convert_fn"),
    "argosy.io.dataloader.worker": ("WorkerInfo", "get_worker_info"),
    "argosy.io.dataset": ("ConcatDataset", "Dataset", "IterableDataset", "Subset", "TensorDataset", "random_split"),
    "argosy.io.sampler": ("BatchSampler", "DistributedBatchSampler", "RandomSampler", "Sampler", "SequenceSampler"),
}
_TABLE = {name: f"{module}:{name}" for module, names in _MODULES.items() for name in names}

__getattr__, __dir__ = face(__name__, _TABLE, globals())
