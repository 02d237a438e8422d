"""Starting the ranks of a job: ``python -m argosy.distributed.launch [options] script [arguments]``.

In the order of a run: ``arguments`` reads the command, ``process_manager`` builds the one that starts the processes,
``job`` watches them, ``worker`` is what each of them is, ``parent`` lets none of them outlive who started it.
"""

import sys
from types import ModuleType


class _Launch(ModuleType):
    """The module, which is called as the command is: ``argosy.distributed.launch()``."""

    def __call__(self) -> None:
        """Start the ranks that the command line asks for. Ends the program with the job's exit code where that is not
        0."""
        from argosy.distributed.launch.command import main

        code = main()
        if code:
            sys.exit(code)


sys.modules[__name__].__class__ = _Launch
