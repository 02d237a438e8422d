"""Which cases of a test run always: of one marked ``exhaustive(every=n)`` each n-th, the others where CI has time."""

from collections import Counter

import pytest


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items):
    """Take the mark from the cases that run always."""
    counts = Counter()
    for item in items:
        mark = item.get_closest_marker("exhaustive")
        if mark is None or "every" not in mark.kwargs:
            continue
        test = item.nodeid.partition("[")[0]
        if counts[test] % mark.kwargs["every"] == 0:
            item.own_markers.remove(mark)
        counts[test] += 1
