"""``python -m argosy``: the ``argosy`` command."""

import sys

from argosy.cli.main import main

sys.exit(main())
