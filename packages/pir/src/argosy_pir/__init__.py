"""The argosy intermediate representation: an IR toolkit in pure Python.

The core is imported here; the text form, passes, rewrites and serialisation load on first use.
"""

from argosy_pir.__about__ import __version__
from argosy_pir.attributes import (
    NO_ANNOTATIONS,
    Attributes,
    Dense,
    FrozenDict,
    Symbol,
    attribute_key,
    attributes_key,
    normalise,
)
from argosy_pir.builder import Builder
from argosy_pir.core import Block, Operation, Region
from argosy_pir.dialect import (
    Dialect,
    get_definition,
    get_dialect,
    has_trait,
    loaded_dialects,
    register_dialect,
)
from argosy_pir.dims import (
    Dim,
    SymExpr,
    dim_product,
    dim_symbols,
    evaluate_dim,
    floor_div,
    is_static,
    maximum,
    minimum,
    modulo,
)
from argosy_pir.errors import DialectError, FormatError, IRError, ParseError, PassError, VerifyError
from argosy_pir.location import UNKNOWN, FusedLocation, Location
from argosy_pir.opdef import COMMUTATIVE, CONSTANT, EFFECT, PURE, SYMBOL, TERMINATOR, OpDef
from argosy_pir.program import Function, Program, State, from_bytes, parse_program, program_of
from argosy_pir.scalars import decode_scalar, encode_scalar
from argosy_pir.types import ITEM_SIZES, FunctionType, OpaqueType, TensorType, TokenType, Type
from argosy_pir.values import VALUE_OPERATORS, BlockArgument, OpResult, Value, set_value_operators

_LAZY = {
    "parse_dim": "argosy_pir.text.parser",
    "parse_type": "argosy_pir.text.parser",
    "print_operation": "argosy_pir.text.printer",
    "print_program": "argosy_pir.text.printer",
    "verify_program": "argosy_pir.verifier",
    "to_bytes": "argosy_pir.serialization",
    "structurally_equal": "argosy_pir.equality",
}

__all__ = [
    "COMMUTATIVE", "CONSTANT", "EFFECT", "ITEM_SIZES", "NO_ANNOTATIONS", "PURE", "SYMBOL", "TERMINATOR",
    "UNKNOWN", "VALUE_OPERATORS", "Attributes", "Block", "BlockArgument", "Builder", "Dense", "Dialect",
    "DialectError", "Dim", "FormatError", "FrozenDict", "Function", "FunctionType", "FusedLocation",
    "IRError", "Location", "OpDef", "OpResult", "OpaqueType", "Operation", "ParseError", "PassError",
    "Program", "Region", "State", "SymExpr", "Symbol", "TensorType", "TokenType", "Type", "Value",
    "VerifyError", "__version__", "attribute_key", "attributes_key", "decode_scalar", "dim_product",
    "dim_symbols", "encode_scalar", "evaluate_dim", "floor_div", "from_bytes", "get_definition",
    "get_dialect", "has_trait", "is_static", "loaded_dialects", "maximum", "minimum", "modulo",
    "normalise", "parse_dim", "parse_program", "parse_type", "print_operation", "print_program",
    "program_of", "register_dialect", "set_value_operators", "structurally_equal", "to_bytes",
    "verify_program",
]  # fmt: skip


def __getattr__(name: str) -> object:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'argosy_pir' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(module), name)
    return value
