"""bind-sizes: numbers for symbolic sizes."""

from __future__ import annotations

from dataclasses import dataclass

from argosy_pir.attributes import Attributes, Dense, FrozenDict
from argosy_pir.dims import SymExpr
from argosy_pir.errors import PassError
from argosy_pir.passes.registry import Pass, register_pass
from argosy_pir.program import Program
from argosy_pir.types import FunctionType, TensorType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from argosy_pir.core import Region
    from argosy_pir.values import Value


@register_pass("bind-sizes")
@dataclass(frozen=True)
class BindSizes(Pass):
    """Puts numbers in the place of symbols: ``sizes`` says which, such as ``"rows=4"``. Other symbols stay."""

    sizes: tuple[str, ...] = ()

    @staticmethod
    def from_sizes(numbers: Mapping[str, int]) -> BindSizes:
        """The pass for these numbers of symbols."""
        return BindSizes(tuple([f"{name}={number}" for name, number in numbers.items()]))

    def run(self, program: Program) -> bool:
        """Bind them in types and attributes; True where any of them occurred."""
        numbers = dict(map(_parse_binding, self.sizes))
        changed = False
        for value in _values(program):
            bound = _bind(value.type, numbers)
            if bound != value.type:
                value.type, changed = bound, True
        for op in program.walk():
            attributes = {name: _bind(value, numbers) for name, value in op.attributes.items()}
            if attributes != op.attributes:
                op.attributes, changed = Attributes(attributes), True
        return changed


def _parse_binding(text: str) -> tuple[str, int]:
    name, _, number = text.rpartition("=")
    if not name or not number.isdecimal():
        raise PassError(f"bind-sizes: expected sizes such as 'rows=4', got {text!r}")
    return name, int(number)


def _values(program: Program) -> Iterator[Value]:
    for region in (program.region, *(function.region for function in program.functions.values())):
        yield from _arguments(region)
    for op in program.walk():
        yield from op.results
        for region in op.regions:
            yield from _arguments(region)


def _arguments(region: Region) -> Iterator[Value]:
    for block in region.blocks:
        yield from block.arguments


def _bind(value: Any, numbers: Mapping[str, int]) -> Any:
    """A type or an attribute with numbers for symbols."""
    if isinstance(value, SymExpr):
        return value.substitute(numbers)
    if isinstance(value, TensorType):
        return value if value.is_static else TensorType(_bind(value.shape, numbers), value.dtype)
    if isinstance(value, Dense):
        return Dense(_bind(value.type, numbers), value.data) if not value.type.is_static else value
    if isinstance(value, FunctionType):
        return FunctionType(_bind(value.inputs, numbers), _bind(value.results, numbers))
    if isinstance(value, tuple):
        return tuple([_bind(item, numbers) for item in value])
    if isinstance(value, FrozenDict):
        return FrozenDict({key: _bind(item, numbers) for key, item in value.items()})
    return value
