"""Written by ``python -m argosy.api.stubs``."""

from typing import Any as _Any
from typing import NoReturn as _NoReturn

from argosy.compat.functions import equal as equal
from argosy.compat.functions import max as max
from argosy.compat.functions import median as median
from argosy.compat.functions import min as min
from argosy.compat.functions import nanmedian as nanmedian
from argosy.compat import nn as nn
from argosy.compat.functions import seed as seed
from argosy.compat.functions import slogdet as slogdet
from argosy.compat.functions import sort as sort
from argosy.compat.functions import split as split
from argosy.compat.functions import unique as unique
def disable_compat(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def enable_compat(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
