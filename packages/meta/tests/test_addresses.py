"""Modules without a file: places where Paddle defines what argosy defines elsewhere."""

import importlib
import inspect
import pickle
import subprocess
import sys
from importlib.util import find_spec

import pytest

import argosy
from argosy.api import targets
from argosy.api.addresses import ADDRESSES


@pytest.mark.parametrize("module", sorted(ADDRESSES))
def test_an_address_gives_what_its_homes_define(module):
    """As the object itself, listed and documented, whatever way it is imported."""
    found = importlib.import_module(module)
    assert found.__doc__
    assert find_spec(module) is found.__spec__
    for name, target in targets(module).items():
        home, _, own = target.partition(":")
        if own and not target.startswith(("absent", "operators")):
            assert getattr(found, name) is getattr(importlib.import_module(home), own)
        assert name in dir(found)


def test_an_address_loads_nothing_before_a_name_is_used():
    code = "import argosy.optimizer.adamw, sys; print('numpy' in sys.modules, 'argosy.optimizer.adam' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown == "False False\n"


def test_what_comes_from_an_address_is_pickled_and_shown_by_its_home():
    from argosy.optimizer.adamw import AdamW

    assert pickle.loads(pickle.dumps(AdamW)) is argosy.optimizer.AdamW
    assert inspect.getsource(AdamW).startswith("class AdamW")


def test_a_module_that_is_nowhere_is_not_found():
    with pytest.raises(ModuleNotFoundError, match=r"argosy\.optimizer\.nothing"):
        importlib.import_module("argosy.optimizer.nothing")
    with pytest.raises(AttributeError, match="'nothing'"):
        _ = argosy.linalg.nothing
