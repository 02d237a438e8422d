"""Axis notation: terms bind to shapes, and primitives report true dependence."""

import numpy as np
import pytest

from argosy_phi_ops.declare.axes import AxisNotation, parse_notation
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_phi_ops.primitives.layout import reshape_notation
from argosy_pir.dims import SymExpr
from argosy_pir.types import TensorType

S = SymExpr.symbol("s")


def test_contraction_names_its_reduced_factor():
    notation = parse_notation("b m k, b k n -> b m n", [(2, 3, 4), (2, 4, 5)], "sum")
    assert notation.reduced_factors == {"k"}
    assert str(notation) == "b m k, b k n -> b m n"


def test_ellipsis_aligns_at_the_right_and_axes_of_size_one_carry_nothing():
    notation = parse_notation("..., ... -> ...", [(4, 1, 3), (2, 3)])
    assert notation.operands == ((("e3",), (), ("e1",)), (("e2",), ("e1",)))
    assert notation.results == ((("e3",), ("e2",), ("e1",)),)


def test_a_rank_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="does not fit axis notation"):
        parse_notation("m k -> m", [(2, 3, 4)])


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ((2, S, 12), (2, S, 3, 4), "g0_0 g1_0 (g2_0 g2_1) -> g0_0 g1_0 g2_0 g2_1"),
        ((2, S, 3, 4), (2, S, 12), "g0_0 g1_0 g2_0 g2_1 -> g0_0 g1_0 (g2_0 g2_1)"),
        ((2, S, 12), (2 * S, 12), "g0_0 g0_1 g1_0 -> (g0_0 g0_1) g1_0"),
        ((4, 6), (3, 8), "!g0 !g0 -> !g0 !g0"),
        ((6,), (6, 1), "g0_0 -> g0_0 ()"),
        ((1, 6), (6,), "() g1_0 -> g1_0"),
        ((S, 6), (1, S, 6), "g1_0 g2_0 -> () g1_0 g2_0"),
        ((3, 1, S), (1, 3, S), "g1_0 () g3_0 -> () g1_0 g3_0"),
        ((1, 1, 6), (1, 6), "g0_0 () g2_0 -> g0_0 g2_0"),
    ],
)
def test_reshape_keeps_factors_where_it_only_merges_or_splits(before, after, text):
    found = reshape_notation(before, after)
    assert str(found) == text


def test_every_primitive_on_plain_tensors_depends_only_on_what_its_notation_says():
    """Changing an operand along a factor changes results only at that index of the factor."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 4)).astype("float32")
    for name, attributes in {
        "exp": {}, "transpose": {"permutation": (1, 0)}, "reduce_sum": {"axes": (1,)}, "reverse": {"axes": (1,)},
        "cumulative": {"axis": 1, "kind": "sum"}, "argmax": {"axis": 1},
    }.items():  # fmt: skip
        primitive = PRIMITIVES[name]
        notation = primitive.notation([TensorType((3, 4), "float32")], primitive.complete(attributes))
        assert isinstance(notation, AxisNotation)
        changed = x.copy()
        changed[1] += 3.0
        before, after = primitive(x, **attributes), primitive(changed, **attributes)
        (row,) = notation.operands[0][0]
        axis = next(i for i, term in enumerate(notation.results[0]) if row in term)
        other = np.moveaxis(before != after, axis, 0)
        assert not np.delete(other, 1, axis=0).any(), name
