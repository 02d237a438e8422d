"""Emitters of the family ``simt``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from argosy_cinn.printers.work_groups import WorkGroupInstructions
from argosy_cinn.target import Target


def _nothing_to_choose(form: Any, target: Any) -> None:
    """The schedule of a form whose kernel needs no choice before memory is planned."""


def _any_sizes(form: Any, target: Target, sizes: Mapping[str, int]) -> bool:
    """Sums whose order is that of their terms."""
    return True


@dataclass(frozen=True, slots=True)
class SimtEmitter:
    """``emit(kernel, form, slots)`` fills a kernel, where ``slots`` gives the place of every buffer among its own;
    ``extents(form, target)`` are the groups that it is launched in, and the work-items of each. Trees of sums depend
    on shapes alone, so that a program gives the same bits on every device: ``serves(form, target, sizes)`` says whether
    code for all sizes adds in the order of code for these."""

    emit: Callable[[WorkGroupInstructions, Any, Mapping[Any, int]], None]
    extents: Callable[[Any, Target], tuple[int, int]]
    schedule: Callable[[Any, Any], None] = _nothing_to_choose
    serves: Callable[[Any, Target, Mapping[str, int]], bool] = _any_sizes
