"""Checks, how they are declared and run, and what they are given."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import NamedTuple

from argosy_hwadapt.contract import DeviceRuntime
from argosy_hwadapt.device import Device

#: Level -> the module of this folder that holds its checks.
LEVELS = {0: "loading", 1: "memory", 2: "launching", 5: "groups", 6: "faults"}


class CheckFailed(Exception):
    """The device does not do what the contract says."""


class CheckSkipped(Exception):
    """The check does not apply to this device or machine; the text says why."""


class Subject(NamedTuple):
    """The device under test."""

    name: str
    runtime: DeviceRuntime
    device: Device


class Outcome(NamedTuple):
    """What came of one check. ``status`` is passed, failed or skipped."""

    level: int
    name: str
    status: str
    detail: str
    seconds: float


class _Check(NamedTuple):
    level: int
    function: Callable[[Subject], None]


CHECKS: list[_Check] = []


def check(level: int) -> Callable[[Callable[[Subject], None]], Callable[[Subject], None]]:
    """Declare a check of a level; its name is the function's, its meaning the docstring's first line."""

    def declare(function: Callable[[Subject], None]) -> Callable[[Subject], None]:
        CHECKS.append(_Check(level, function))
        return function

    return declare


def require(condition: object, message: str) -> None:
    """Fail the check unless the condition holds."""
    if not condition:
        raise CheckFailed(message)


def require_error(kind: type[BaseException], action: Callable[[], object], what: str) -> BaseException:
    """Fail the check unless the action raises this kind of error; return the error."""
    try:
        action()
    except kind as error:
        return error
    except Exception as other:
        raise CheckFailed(f"{what}: expected {kind.__name__}, got {type(other).__name__}: {other}") from other
    raise CheckFailed(f"{what}: expected {kind.__name__}, nothing was raised")


def run_checks(subject: Subject, levels: Iterable[int]) -> list[Outcome]:
    """Run all checks of these levels, in order; a failing check does not stop the others."""
    wanted = set(levels)
    for level in wanted:
        import_module(f"argosy_hwadapt.testing.{LEVELS[level]}")
    return [_run(each, subject) for each in sorted(CHECKS, key=lambda c: c.level) if each.level in wanted]


def _run(each: _Check, subject: Subject) -> Outcome:
    start = time.perf_counter()
    status, detail = "passed", ""
    try:
        each.function(subject)
    except CheckSkipped as reason:
        status, detail = "skipped", str(reason)
    except Exception as error:  # noqa: BLE001 - any error is a finding about the plug-in, and is reported
        status, detail = "failed", f"{type(error).__name__}: {error}"
    return Outcome(each.level, each.function.__name__, status, detail, time.perf_counter() - start)
