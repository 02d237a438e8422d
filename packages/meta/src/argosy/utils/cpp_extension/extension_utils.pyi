"""Written by ``python -m argosy.api.stubs``."""

from typing import Any as _Any
from typing import NoReturn as _NoReturn

def load_op_meta_info_and_register_op(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
