"""The order of the whole suite."""


def pytest_collection_modifyitems(items):
    """The longest tests come first: at the end of the list they would keep one worker while the other has nothing."""
    items.sort(key=lambda item: "test_install_alone" not in item.nodeid)
