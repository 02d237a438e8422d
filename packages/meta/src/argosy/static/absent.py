"""What Paddle's ``static`` and ``static.nn`` have and these do not, each by its name."""

from argosy.absent import absent_names

__all__ = ["FUNCTIONS"]

_UNEQUAL = "it needs sequences of unequal lengths in one tensor, which Paddle 3 no longer takes either; pad and mask"
_IPU = "there is no IPU"
FUNCTIONS = {
    **dict.fromkeys(
        (
            "sequence_conv", "sequence_expand", "sequence_first_step", "sequence_last_step", "sequence_pool",
            "sequence_softmax",
        ),
        _UNEQUAL,
    ),
    **dict.fromkeys(("IpuCompiledProgram", "IpuStrategy", "ipu_shard_guard", "set_ipu_shard"), _IPU),
    "ctr_metric_bundle": "it sums over parameter servers; metric.Auc and sums of predictions tell the same of one",
    "nce": "nn.functional.margin_cross_entropy and class_center_sample draw classes",
    "sparse_embedding": "it is a table on parameter servers; embedding holds the table in memory",
}  # fmt: skip
"""Why each is not there."""

__getattr__ = absent_names(__name__, "static", FUNCTIONS)
