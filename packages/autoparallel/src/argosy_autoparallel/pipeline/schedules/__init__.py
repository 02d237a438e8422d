"""Schedules as pure functions of ranks, microbatches and chunks: what each rank runs, in order."""

from argosy_autoparallel.pipeline.schedules.dual_pipe import dual_pipe_v
from argosy_autoparallel.pipeline.schedules.f_then_b import f_then_b
from argosy_autoparallel.pipeline.schedules.interleaved_one_f_one_b import interleaved_one_f_one_b
from argosy_autoparallel.pipeline.schedules.one_f_one_b import eager_one_f_one_b, one_f_one_b
from argosy_autoparallel.pipeline.schedules.search import Durations, search_zero_bubble
from argosy_autoparallel.pipeline.schedules.zero_bubble import zb_h1, zb_v

__all__ = [
    "Durations", "dual_pipe_v", "eager_one_f_one_b", "f_then_b", "interleaved_one_f_one_b", "one_f_one_b",
    "search_zero_bubble", "zb_h1", "zb_v",
]  # fmt: skip
