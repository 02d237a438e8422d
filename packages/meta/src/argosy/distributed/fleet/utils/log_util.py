"""The logger of ``fleet``, and its level."""

import logging

__all__ = ["get_log_level_code", "get_log_level_name", "logger", "set_log_level"]

logger = logging.getLogger("argosy.distributed.fleet")


def set_log_level(level: int | str) -> None:
    """Let ``fleet`` log messages from ``level`` on, a number or a name of ``logging``, in any case of letters."""
    logger.setLevel(level.upper() if isinstance(level, str) else level)


def get_log_level_code() -> int:
    """The number of the level from which on ``fleet`` logs."""
    return logger.getEffectiveLevel()


def get_log_level_name() -> str:
    """The name of that level."""
    return logging.getLevelName(get_log_level_code())
