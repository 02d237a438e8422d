"""The command line: ``python -m argosy_cinn {replay,bisect,tuned}``."""

from __future__ import annotations

import sys


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["replay"]:
        from argosy_cinn.tools.replay import main as replay

        return replay(given[1:])
    if given[:1] == ["bisect"]:
        from argosy_cinn.tools.bisect import main as bisect

        return bisect(given[1:])
    if given[:1] == ["tuned"]:
        from argosy_cinn.runtime import default_cache
        from argosy_cinn.tuning.tuner import choices

        sys.stdout.writelines(f"{choice.line()}\n" for choice in choices(default_cache()))
        return 0
    sys.stderr.write(
        "usage: python -m argosy_cinn replay FOLDER [--against FOLDER] [--repeat N]\n"
        "       python -m argosy_cinn bisect -- COMMAND...\n"
        "       python -m argosy_cinn tuned\n"
    )
    return 2


if __name__ == "__main__":
    sys.exit(main())
