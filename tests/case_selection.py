"""Which cases of a test run always: of one marked ``exhaustive(every=n)`` each n-th, the others where CI has time, and
where tests are chosen by name (``-k``)."""

from collections import Counter

import pytest


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(config, items):
    """Take the mark from the cases that run always."""
    counts, named = Counter(), config.option.keyword and config.option.markexpr != "exhaustive"
    for item in items:
        mark = item.get_closest_marker("exhaustive")
        if mark is None or "every" not in mark.kwargs:
            continue
        test = item.nodeid.partition("[")[0]
        if named or counts[test] % mark.kwargs["every"] == 0:
            item.own_markers.remove(mark)
        counts[test] += 1
