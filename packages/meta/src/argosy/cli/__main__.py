"""``python -m argosy.cli``."""

import sys

from argosy.cli import main

sys.exit(main())
