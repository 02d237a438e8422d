"""Emitters: how forms of one kind become code, for one family of schedules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from argosy_cinn.forms.form import Form
from argosy_cinn.printers.llvm import Function, Module
from argosy_cinn.printers.types import Index
from argosy_cinn.target import Target


def _own_summary(form: Form, target: Target) -> str:
    return form.summary()


def _nothing_to_choose(form: Form, target: Target) -> None:
    """The schedule of a form whose code needs no choice before memory is planned."""


@dataclass(frozen=True, slots=True)
class Emitter:
    """``emit(module, name, form, slots)`` defines the function of a kernel; ``slots`` has the place of every buffer in
    its table, and functions of a form's regions are called ``<name>.region<i>``. It runs in ``chunks(form, target)``: 0
    is one for each thread, or as many as ``grid(form, b)`` computes where it is called.
    ``schedule(form, target)`` chooses what the plan of memory depends on, for this machine. ``summary``: a line for
    `argosy_cinn.explain`.
    """

    emit: Callable[[Module, str, Any, Mapping[Any, int]], None]
    chunks: Callable[[Any, Target], int]
    grid: Callable[[Any, Function], Index] | None = None
    summary: Callable[[Any, Target], str] = _own_summary
    schedule: Callable[[Any, Target], None] = _nothing_to_choose
