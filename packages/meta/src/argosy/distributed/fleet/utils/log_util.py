"""Where Paddle has the logger of ``fleet``."""

import logging

__all__ = ["logger"]

logger = logging.getLogger("argosy.distributed.fleet")
