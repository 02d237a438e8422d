"""Data sets, samplers and loaders: the face of ``argosy.io``."""

from argosy.faces import face

_MODULES = {
    "dataset": (
        "ChainDataset", "ComposeDataset", "ConcatDataset", "Dataset", "IterableDataset", "Subset", "TensorDataset",
        "random_split",
    ),
    "sampler": (
        "BatchSampler", "DistributedBatchSampler", "RandomSampler", "Sampler", "SequenceSampler",
        "SubsetRandomSampler", "WeightedRandomSampler",
    ),
    "dataloader": ("DataLoader",),
    "worker": ("WorkerInfo", "get_worker_info"),
    "collate": ("default_collate_fn", "default_convert_fn"),
}  # fmt: skip
_TABLE = {name: f"argosy.io.{module}:{name}" for module, names in _MODULES.items() for name in names}

__getattr__, __dir__ = face(__name__, _TABLE, globals())
