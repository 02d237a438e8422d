"""The conftest of a package's tests where it is installed alone; see ``test_install_alone.py``."""

import gc
from pathlib import Path

import pytest

PASSED = Path(__file__).with_name("passed")  # some tests change the folder


@pytest.hookimpl(wrapper=True)
def pytest_collection():  # what is collected stays: the collector need not look at it again and again
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_runtest_logreport(report):
    if report.when == "call" and report.passed:
        with PASSED.open("a", encoding="utf-8") as file:
            print(report.nodeid, file=file)
