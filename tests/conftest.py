"""The order of the whole suite, and what several of its files need."""

import pytest


@pytest.fixture
def hot_at_once(monkeypatch):
    """Eager calls that are seen a few times are compiled."""
    from argosy_phi_ops import hot, routes

    monkeypatch.setattr(hot, "BUDGET", 1)
    routes.forget()
    yield
    routes.forget()


def pytest_collection_modifyitems(items):
    """The longest tests come first: at the end of the list they would keep one worker while the other has nothing."""
    items.sort(key=lambda item: "test_install_alone" not in item.nodeid)
