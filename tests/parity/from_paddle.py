"""The list of known differences as it stands in ``docs/FROM_PADDLE.md``: ``python tests/parity/from_paddle.py`` writes
it anew."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:] = [str(TESTS), *(p for p in sys.path if Path(p or ".").resolve() != TESTS / "parity")]

from parity.known_differences import DIFFERENCES, VISION  # noqa: E402

__all__ = ["PAGE", "listed", "with_list"]

PAGE = TESTS.parent / "docs" / "FROM_PADDLE.md"
BEGIN, END = (
    "<!-- known differences: written by tests/parity/from_paddle.py -->\n",
    "<!-- end of known differences -->\n",
)


def listed() -> str:
    """A row for each reason, with the cases that it is the reason of."""
    cases: dict[str, list[str]] = {}
    for pattern, reason in {**DIFFERENCES, **VISION}.items():
        cases.setdefault(reason, []).append(f"`{pattern}`".replace("|", "\\|"))
    rows = [f"| {reason} | {', '.join(found)} |" for reason, found in cases.items()]
    return "| what differs | where |\n|---|---|\n" + "\n".join(rows) + "\n"


def with_list(page: str) -> str:
    """The page with the list as it is now."""
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + listed() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(with_list(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
