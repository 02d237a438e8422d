"""Failures of tests without the frames inside of argosy: what ``argosy.tracebacks`` does, for pytest."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from argosy.tracebacks import fold_tracebacks


@pytest.hookimpl(wrapper=True)  # type: ignore[untyped-decorator,unused-ignore]  # where pytest is not installed
def pytest_runtest_makereport(item: Any, call: Any) -> Generator[None, Any, Any]:
    """The report of a phase of a test, made while the error that it has is folded."""
    if call.excinfo is None:
        return (yield)
    with fold_tracebacks(call.excinfo.value):
        shown = call.excinfo
        call.excinfo = type(shown).from_exception(shown.value)
        try:
            return (yield)
        finally:
            call.excinfo = shown
