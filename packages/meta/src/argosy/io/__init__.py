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
    "dataloader.loader": ("DataLoader",),
    "dataloader.worker": ("WorkerInfo", "get_worker_info"),
    "dataloader.collate": ("default_collate_fn", "default_convert_fn"),
}  # fmt: skip
_TABLE = {name: f"argosy.io.{module}:{name}" for module, names in _MODULES.items() for name in names}
_TABLE |= {"dataloader": "argosy.io.dataloader"}

__getattr__, __dir__ = face(__name__, _TABLE, globals())
