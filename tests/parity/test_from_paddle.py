"""The page for users of Paddle shows the list of known differences as it is."""

from .from_paddle import BEGIN, END, PAGE, listed, with_list


def test_the_page_shows_the_list() -> None:
    """``python tests/parity/from_paddle.py`` writes it anew."""
    page = PAGE.read_text(encoding="utf-8")
    assert with_list(page) == page
    assert listed() in page


def test_only_the_list_is_written() -> None:
    """What stands before and after it stays."""
    assert with_list("a\n" + BEGIN + "old" + END + "b\n") == "a\n" + BEGIN + listed() + END + "b\n"
