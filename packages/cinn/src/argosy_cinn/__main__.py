"""The command line: ``python -m argosy_cinn {replay,bisect}``."""

from __future__ import annotations

import sys


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["replay"]:
        from argosy_cinn.replay import main as replay

        return replay(given[1:])
    if given[:1] == ["bisect"]:
        from argosy_cinn.bisect import main as bisect

        return bisect(given[1:])
    sys.stderr.write(
        "usage: python -m argosy_cinn replay FOLDER [--against FOLDER] [--repeat N]\n"
        "       python -m argosy_cinn bisect -- COMMAND...\n"
    )
    return 2


if __name__ == "__main__":
    sys.exit(main())
