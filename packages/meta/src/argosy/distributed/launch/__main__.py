"""``python -m argosy.distributed.launch``."""

import sys

from argosy.distributed.launch.command import main

sys.exit(main())
