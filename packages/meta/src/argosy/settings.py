"""Settings from the environment, each declared once: name, default, meaning. They are read when they are used.

``ARGOSY_DUMP``, ``ARGOSY_VERIFY`` and ``ARGOSY_LOG`` change what is shown and checked, never what is computed, so
they are part of no cache's key; ``ARGOSY_CHECK_INDEX`` changes code and is part of it.
"""

from __future__ import annotations

import os
import sys

__all__ = ["SETTINGS", "Setting", "log", "read"]


class Setting:
    """One variable: its ``name``, ``default`` value and ``help``."""

    __slots__ = ("default", "help", "name")

    def __init__(self, name: str, default: str, help: str) -> None:
        self.name, self.default, self.help = name, default, help


SETTINGS = {
    setting.name: setting
    for setting in (
        Setting("ARGOSY_DUMP", "", "a folder that receives every captured program before and after each pass"),
        Setting("ARGOSY_VERIFY", "0", "1 verifies captured programs after each pass that runs"),
        Setting("ARGOSY_LOG", "", "events to print, separated by commas: compile"),
        Setting("ARGOSY_CHECK_INDEX", "1", "0 lets compiled programs clamp or drop indices that are out of range"),
        Setting("ARGOSY_EAGER", "", "plain: eager execution in Python alone, without native code"),
        Setting("ARGOSY_CHECK_COLLECTIVES", "1", "0 leaves out that ranks compare their calls before each collective"),
        Setting("ARGOSY_MPIEXEC", "", "the mpiexec that starts ranks, instead of the one beside Python or on the PATH"),
    )
}


def read(name: str) -> str:
    """The value of a setting that is declared here."""
    return os.environ.get(name, SETTINGS[name].default)


def log(event: str, line: str) -> None:
    """Print one line about an event when ``ARGOSY_LOG`` names it."""
    if event in read("ARGOSY_LOG").split(","):
        sys.stderr.write(f"argosy {event}: {line}\n")
