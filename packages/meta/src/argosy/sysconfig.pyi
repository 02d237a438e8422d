"""Written by ``python -m argosy.api.stubs``."""

from typing import Any as _Any
from typing import NoReturn as _NoReturn

def get_include(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def get_lib(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
