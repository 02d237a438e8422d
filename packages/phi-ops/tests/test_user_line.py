"""Warnings and operations are about the user's line, however deep in the framework something is noticed."""

import warnings

import pytest

from argosy_phi_ops.user_line import user_location, warn_user

FRAMEWORK = ["argosy_cinn.runtime.cache", "importlib._bootstrap", "argosy.jit", "contextlib"]


def inside(names, function):
    """``function`` called by code of modules of these names, the last one outermost."""
    for name in names:
        scope = {"__name__": name, "function": function}
        exec(compile("def call(*args):\n    return function(*args)", f"{name}.py", "exec"), scope)
        function = scope["call"]
    return function


@pytest.mark.parametrize("depth", range(len(FRAMEWORK) + 1))
def test_frames_of_the_framework_are_passed_over(depth):
    with pytest.warns(RuntimeWarning, match="told") as found:
        inside(FRAMEWORK[:depth], warn_user)("told", RuntimeWarning)
    where = inside(FRAMEWORK[:depth], user_location)()
    assert [w.filename for w in found] == [where.file] == [__file__]
    assert where.line == found[0].lineno + 1


def test_a_module_of_another_name_is_the_users():
    with pytest.warns(UserWarning, match="told") as found:
        inside(["argosy.nn", "argosy_plugin", "argosy"], warn_user)("told")
    assert found[0].filename == "argosy_plugin.py"


def test_a_line_is_warned_about_once_and_filters_know_its_module():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(3):
            inside(FRAMEWORK, warn_user)("again and again")
        warnings.filterwarnings("ignore", module=__name__)
        warn_user("not wanted here")
    assert len(found) == 1
