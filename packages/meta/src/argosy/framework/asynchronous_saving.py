"""``async_save``: states that are written while the script goes on."""

from __future__ import annotations

import atexit
import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, BinaryIO

from argosy.framework.serialization import save
from argosy_tensorcore.tensor import Tensor

__all__ = ["async_save", "clear_async_save_task_queue"]

_pool: ThreadPoolExecutor | None = None
_waiting: list[Future[None]] = []


def async_save(
    obj: Any,
    path: str | os.PathLike[str] | BinaryIO,
    protocol: int = 4,
    sync_other_task: bool = False,
    **configs: Any,
) -> None:
    """:func:`argosy.save` in the background, of values as they are now: what is trained on meanwhile is not seen.

    obj: a tensor or a dictionary. sync_other_task: first wait for what is being saved. Files are written in the order
    of the calls, and the interpreter waits for them. Errors are raised by :func:`clear_async_save_task_queue`. Raises
    TypeError for other objects.
    """
    global _pool
    if _pool is None:
        atexit.register(clear_async_save_task_queue)  # so that an error nobody asked for is seen
    if not isinstance(obj, (dict, Tensor)):
        raise TypeError(f"async_save(): argument 'obj' must be a dictionary or a Tensor, got {type(obj).__name__}")
    if sync_other_task:
        clear_async_save_task_queue()
    _pool = _pool or ThreadPoolExecutor(1, "argosy-save")
    _waiting.append(_pool.submit(save, _copy(obj), path, protocol, **configs))


def clear_async_save_task_queue() -> None:
    """Wait until everything is saved. Raises the first error that saving met."""
    waiting = list(_waiting)
    _waiting.clear()
    errors = [error for task in waiting if (error := task.exception()) is not None]
    if errors:
        raise errors[0]


def _copy(x: Any) -> Any:
    if isinstance(x, Tensor):
        copy = x.detach().clone()
        copy.name = x.name
        return copy
    if isinstance(x, dict):
        return {key: _copy(value) for key, value in x.items()}
    return type(x)(map(_copy, x)) if type(x) in (list, tuple) else x
