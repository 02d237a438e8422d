"""Written by ``python -m argosy.api.stubs``."""

from typing import Any as _Any
from typing import NoReturn as _NoReturn

def CostModel(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
