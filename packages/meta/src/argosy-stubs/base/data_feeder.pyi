"""Written by ``python -m argosy.api.stubs``."""

from argosy.common_ops_import import check_dtype as check_dtype
from argosy.common_ops_import import check_type as check_type
from argosy.common_ops_import import check_variable_and_dtype as check_variable_and_dtype
from argosy.common_ops_import import convert_dtype as convert_dtype
