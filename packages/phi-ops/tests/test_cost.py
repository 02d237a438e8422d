"""The cost that primitives declare: operations and bytes of their applications."""

import pytest

from argosy_phi_ops.primitives import PRIMITIVES
from argosy_phi_ops.primitives.cost import UNKNOWN, Cost
from argosy_pir.dims import SymExpr
from argosy_pir.types import TensorType


def cost(name, *operands, **attributes):
    types = [TensorType(shape, "float32") for shape in operands]
    complete = PRIMITIVES[name].complete(attributes)
    return PRIMITIVES[name].cost(types, complete, PRIMITIVES[name].types(types, complete))


def test_arithmetic_reads_and_writes_every_element_once():
    """A transcendental function takes more operations for the same bytes."""
    assert cost("add", (8, 4), (8, 4)) == Cost(256, 128, 32)
    exp, add = cost("exp", (8, 4)), cost("add", (8, 4), (8, 4))
    assert exp.operations > 4 * add.operations
    assert (exp.read, exp.written) == (128, 128)


def test_products_count_a_multiplication_and_an_addition():
    """Of a product of matrices, a batch of them, a convolution and one in groups."""
    contract = {"lhs_contract": (1,), "rhs_contract": (0,)}
    assert cost("dot_general", (8, 16), (16, 4), **contract).operations == 2 * 8 * 16 * 4
    batched = {"lhs_contract": (2,), "rhs_contract": (1,), "lhs_batch": (0,), "rhs_batch": (0,)}
    assert cost("dot_general", (3, 8, 16), (3, 16, 4), **batched).operations == 3 * 2 * 8 * 16 * 4
    window = {"strides": (1,), "padding": ((0, 0),), "lhs_dilation": (1,), "rhs_dilation": (1,)}
    assert cost("conv", (2, 4, 10), (6, 4, 3), **window).operations == 2 * (2 * 6 * 8) * (4 * 3)
    assert cost("conv", (2, 4, 10), (6, 2, 3), **window, groups=2).operations == 2 * (2 * 6 * 8) * (2 * 3)


def test_a_reduction_takes_an_operation_for_each_element_it_reads():
    """The result of a sum is small, what it reads is not."""
    assert cost("reduce_sum", (8, 4), axes=(0, 1)) == Cost(128, 4, 32)


def test_views_are_free_and_copies_are_bytes():
    """A transpose moves nothing; joining two tensors moves both; a slice by numbers reads what it gives."""
    assert cost("transpose", (8, 4), permutation=(1, 0)) == Cost()
    assert PRIMITIVES["transpose"].is_free
    assert not PRIMITIVES["concat"].is_free
    assert cost("concat", (8, 4), (8, 4), axis=0) == Cost(256, 256, 0)
    indices = TensorType((2, 1), "int32")
    table = TensorType((1000, 4), "float32")
    attributes = PRIMITIVES["gather"].complete({"axes": (0,)})
    made = PRIMITIVES["gather"].types((table, indices), attributes)
    assert PRIMITIVES["gather"].cost((table, indices), attributes, made) == Cost(32 + 8, 32, 8)


@pytest.mark.parametrize("name", ["cholesky", "lu", "qr", "svd", "eigh", "eig", "solve", "triangular_solve"])
def test_decompositions_take_the_cube_of_a_size(name):
    """Eight times as many operations for matrices twice as large, and as often as there are matrices."""
    operands = 2 if "solve" in name else 1
    small, large, two = (cost(name, *[shape] * operands) for shape in ((64, 64), (128, 128), (2, 64, 64)))
    assert large.operations == pytest.approx(8 * small.operations)
    assert two.operations == pytest.approx(2 * small.operations)


def test_textbook_counts_of_factorisations():
    """Those of Golub and Van Loan for square matrices."""
    assert cost("cholesky", (30, 30)).operations == pytest.approx(30**3 / 3)
    assert cost("lu", (30, 30)).operations == pytest.approx(2 * 30**3 / 3)
    assert cost("triangular_solve", (30, 30), (30, 7)).operations == pytest.approx(30**2 * 7)


def test_transforms_and_sorts_take_a_logarithm_more():
    """n log n of each line."""
    x = TensorType((4, 256), "complex64")
    attributes = PRIMITIVES["fft"].complete({"axes": (1,)})
    assert PRIMITIVES["fft"].cost((x,), attributes, (x,)).operations == 5 * 4 * 256 * 8
    assert cost("sort", (4, 256), axis=1).operations == 4 * 256 * 8


def test_a_symbolic_size_counts_as_a_number():
    """So that ways to write a program of symbolic sizes can be compared."""
    n = SymExpr.symbol("n")
    assert cost("add", (n, 4), (n, 4)).operations == 4 * UNKNOWN


def test_every_primitive_has_a_cost_of_its_kind():
    """Work is declared as a whole number; views alone take none and move nothing."""
    for primitive in PRIMITIVES.values():
        assert type(primitive.work) is int, primitive
        assert primitive.work >= 0, primitive
