"""The control dialect: structured control flow. Regions also see the values around them.

- ``if(condition)`` runs its first region where the scalar bool is true, else the second; both yield the
  results.
- ``while(carried...)`` has a region that takes the carried values and ends in ``condition(bool)``, and one
  that takes them and yields the next ones; results are the carried values once the condition is false.
- ``for(start, stop, step, carried...)`` runs its region with the index and the carried values while
  ``index < stop`` (``>`` for a negative step); scalar integers of one dtype.
- ``scan(xs..., carried...) {inputs = number of xs}`` goes along axis 0 of every x, from the end with
  ``reverse = true``. The region takes the slices and the carried values and yields a slice of each stacked
  result and the next carried values, in this order; so are the results. Stacked results keep the positions
  of the slices. Without xs the attribute ``length`` says how often.
"""

from __future__ import annotations

from argosy_pir.dialect import Dialect
from argosy_pir.errors import VerifyError
from argosy_pir.opdef import PURE, TERMINATOR, OpDef
from argosy_pir.types import TensorType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from argosy_pir.core import Operation, Region
    from argosy_pir.dims import Dim
    from argosy_pir.types import Type

CONDITION = TensorType((), "bool")


def _ended_by(region: Region, terminator: str) -> list[Type]:
    """Types of the operands of the region's terminator; raises ``ValueError`` where it ends otherwise."""
    last = region.blocks[0].last if len(region.blocks) == 1 else None
    if last is None or last.name != terminator:
        found = f"{len(region.blocks)} blocks" if last is None else f"'{last.name}'"
        raise ValueError(f"each region should be one block that ends in '{terminator}', found {found}")
    return [value.type for value in last.operands]


def _expect_arguments(op: Operation, index: int, expected: Sequence[Type]) -> None:
    actual = [argument.type for argument in op.regions[index].block.arguments]
    if actual != list(expected):
        given, wanted = (", ".join(map(str, types)) for types in (actual, expected))
        raise VerifyError(f"region {index} takes ({given}), expected ({wanted})", op)


def _expect_yields(actual: Sequence[Type], expected: Sequence[Type]) -> None:
    if list(actual) != list(expected):
        given, wanted = (", ".join(map(str, types)) for types in (actual, expected))
        raise ValueError(f"the region yields ({given}), expected ({wanted})")


def _infer_if(types: Sequence[Type], attributes: Mapping[str, Any], regions: Sequence[Region]) -> list[Type]:
    if types[0] != CONDITION:
        raise TypeError(f"the condition is a {CONDITION}, got {types[0]}")
    results = _ended_by(regions[0], "control.yield")
    _expect_yields(_ended_by(regions[1], "control.yield"), results)
    return results


def _verify_if(op: Operation) -> None:
    for index in (0, 1):
        _expect_arguments(op, index, ())


def _infer_while(types: Sequence[Type], attributes: Mapping[str, Any], regions: Sequence[Region]) -> list[Type]:
    if _ended_by(regions[0], "control.condition") != [CONDITION]:
        raise TypeError(f"the first region ends in control.condition of a {CONDITION}")
    _expect_yields(_ended_by(regions[1], "control.yield"), types)
    return list(types)


def _verify_while(op: Operation) -> None:
    for index in (0, 1):
        _expect_arguments(op, index, [value.type for value in op.operands])


def _infer_for(types: Sequence[Type], attributes: Mapping[str, Any], regions: Sequence[Region]) -> list[Type]:
    index = types[0]
    scalar = isinstance(index, TensorType) and index.shape == () and "int" in index.dtype
    if not scalar or types[1] != index or types[2] != index:
        given = ", ".join(map(str, types[:3]))
        raise TypeError(f"start, stop and step are scalar integers of one dtype, got {given}")
    _expect_yields(_ended_by(regions[0], "control.yield"), types[3:])
    return list(types[3:])


def _verify_for(op: Operation) -> None:
    types = [value.type for value in op.operands]
    _expect_arguments(op, 0, [types[0], *types[3:]])


def scan_length(types: Sequence[Type], attributes: Mapping[str, Any]) -> Dim:
    """How many steps a scan over operands of ``types`` takes; raises ``ValueError`` where that is not
    clear."""
    count = attributes["inputs"]
    if not 0 <= count <= len(types):
        raise ValueError(f"attribute 'inputs' counts scanned operands, got {count} of {len(types)}")
    lengths = {_leading_size(type) for type in types[:count]}
    if attributes.get("length") is not None:
        lengths.add(attributes["length"])
    if len(lengths) != 1:
        given = ", ".join(map(str, types[:count]))
        raise ValueError(f"scanned operands ({given}) and 'length' should agree in one leading size")
    length: Dim = next(iter(lengths))
    return length


def _leading_size(type: Type) -> Dim:
    if not isinstance(type, TensorType) or not type.shape:
        raise TypeError(f"scanned operands are tensors with an axis 0, got {type}")
    return type.shape[0]


def _infer_scan(types: Sequence[Type], attributes: Mapping[str, Any], regions: Sequence[Region]) -> list[Type]:
    length = scan_length(types, attributes)
    carried = list(types[attributes["inputs"] :])
    yields = _ended_by(regions[0], "control.yield")
    stacked = len(yields) - len(carried)
    if stacked < 0:
        raise ValueError(f"the region yields {len(yields)} values, fewer than {len(carried)} carried")
    _expect_yields(yields[stacked:], carried)
    return [_stack(type, length) for type in yields[:stacked]] + carried


def _stack(type: Type, length: Dim) -> TensorType:
    if not isinstance(type, TensorType):
        raise TypeError(f"a scan stacks tensors, not {type}")
    return type.with_shape((length, *type.shape))


def _verify_scan(op: Operation) -> None:
    types = [value.type for value in op.operands]
    count = op.attributes["inputs"]
    slices = [type.with_shape(type.shape[1:]) for type in types[:count] if isinstance(type, TensorType)]
    _expect_arguments(op, 0, [*slices, *types[count:]])


def _patterns() -> list[Any]:
    from argosy_pir.dialects.control_patterns import PATTERNS

    return PATTERNS


DIALECT = Dialect(
    "control",
    patterns=_patterns,
    ops=[
        OpDef("control.if", ["condition"], {}, None, [PURE], _infer_if, _verify_if, regions=2),
        OpDef("control.while", ["*carried"], {}, None, [PURE], _infer_while, _verify_while, regions=2),
        OpDef(
            "control.for",
            ["start", "stop", "step", "*carried"],
            {},
            None,
            [PURE],
            _infer_for,
            _verify_for,
            regions=1,
        ),
        OpDef(
            "control.scan",
            ["*values"],
            {"inputs": "int", "reverse": "bool?", "length": "dim?"},
            None,
            [PURE],
            _infer_scan,
            _verify_scan,
            regions=1,
        ),
        OpDef("control.yield", ["*values"], {}, 0, [TERMINATOR]),
        OpDef("control.condition", ["condition"], {}, 0, [TERMINATOR]),
    ],
)
