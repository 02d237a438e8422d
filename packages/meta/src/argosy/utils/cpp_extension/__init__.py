"""Operators in C++ against Paddle's headers, which argosy has not. Every function raises NotImplementedError."""

from argosy.absent import absent_names

_WHY = "it compiles against Paddle's C++ headers; argosy.library.custom_op takes a C symbol or a Python body"
_NAMES = ("CUDAExtension", "CppExtension", "get_build_directory", "load", "load_op_meta_info_and_register_op", "setup")

__all__ = [name for name in _NAMES if name != "load_op_meta_info_and_register_op"]
__getattr__ = absent_names(__name__, "utils.cpp_extension", dict.fromkeys(_NAMES, _WHY))
