"""Written by ``python -m argosy.api.stubs``."""

from argosy.utils import cpp_extension as cpp_extension
from argosy.utils.checks import deprecated as deprecated
from argosy.utils import dlpack as dlpack
from argosy.utils import download as download
from argosy.nn.nesting import flatten as flatten
from argosy.nn.nesting import map_structure as map_structure
from argosy.nn.nesting import pack_as as _own_pack_sequence_as
from argosy.utils.checks import require_version as require_version
from argosy.utils.checks import run_check as run_check
from argosy.utils.checks import try_import as try_import
from argosy.utils import unique_name as unique_name
pack_sequence_as = _own_pack_sequence_as
