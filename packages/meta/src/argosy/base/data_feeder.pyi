"""Written by ``python -m argosy.api.stubs``."""

from argosy.framework.layer_helper import check_dtype as check_dtype
from argosy.framework.layer_helper import check_type as check_type
from argosy.framework.layer_helper import check_variable_and_dtype as check_variable_and_dtype
from argosy.framework.layer_helper import convert_dtype as convert_dtype
