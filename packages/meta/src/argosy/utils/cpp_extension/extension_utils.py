"""What loads compiled operators of Paddle, under its older address. It raises NotImplementedError."""

from argosy.utils import cpp_extension

__all__ = ["load_op_meta_info_and_register_op"]

load_op_meta_info_and_register_op = cpp_extension.load_op_meta_info_and_register_op
