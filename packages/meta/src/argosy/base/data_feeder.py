"""Where Paddle defines checks of arguments."""

from argosy.common_ops_import import check_dtype, check_type, check_variable_and_dtype, convert_dtype

__all__ = ["check_dtype", "check_type", "check_variable_and_dtype", "convert_dtype"]
