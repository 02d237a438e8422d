"""The text of tensors. The expected blocks are what Paddle 3.3.1 prints of the same data."""

import textwrap

import numpy as np
import pytest

from argosy_tensorcore import Parameter, Tensor, as_dtype
from argosy_tensorcore.printing import OPTIONS, format_array, set_printoptions


@pytest.fixture(autouse=True)
def _default_options():
    saved = {name: getattr(OPTIONS, name) for name in OPTIONS.__slots__}
    yield
    for name, value in saved.items():
        setattr(OPTIONS, name, value)


def printed(array: np.ndarray) -> str:
    """The value block as it stands under a heading of seven columns, with its indentation taken off."""
    return textwrap.dedent(" " * 7 + format_array(np.asarray(array), 7))


def block(text: str) -> str:
    return textwrap.dedent(text).strip("\n")


def test_the_heading_names_shape_dtype_place_and_gradient():
    """The whole text of a vector, a parameter and a scalar."""
    assert repr(Tensor([1.0, 2.0])) == (
        "Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,\n       [1., 2.])"
    )
    assert repr(Parameter([1.0])) == (
        "Parameter containing:\nTensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=False,\n       [1.])"
    )
    assert str(Tensor(1.5)).endswith("\n       1.50000000)")


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.float32(1.5), "1.50000000"),
        (np.float32(-1.25), "-1.25000000"),
        (np.int64(-3), "-3"),
        (np.bool_(True), "True"),
        (np.complex64(1 - 2j), "(1.00000000-2.00000000j)"),
        (np.array([1, -2.5], "f4"), "[ 1.        , -2.50000000]"),
        (np.array([-1, 2, 300]), "[-1 ,  2 , 300]"),
        (np.array([True, False]), "[True , False]"),
        (np.array([np.nan, np.inf, -np.inf, 1.5], "f4"), "[ nan      ,  inf.     , -inf.     , 1.50000000]"),
        (np.array([1e10, 1e-10, 3]), "[10000000000., 0.00000000  , 3.          ]"),
        (np.array([1 + 2j, -3.5j], "c8"), "[ (1.00000000+2.00000000j), (-0.00000000-3.50000000j)]"),
        (np.zeros((0,), "f4"), "[]"),
        (np.array([[-100, 2], [3, 4]], "f4"), "[[-100.,  2.  ],\n [ 3.  ,  4.  ]]"),
    ],
    ids=lambda x: None if isinstance(x, str) else str(x),
)
def test_elements_share_a_width(array, expected):
    """Integral floats lose their zeros, columns align, and a sign gets room when any element has one."""
    assert printed(array) == expected


@pytest.mark.parametrize(("dtype", "last"), [("bfloat16", "0.10009766"), ("float8_e4m3fn", "0.10156250")])
def test_short_floats_print_as_the_float32_they_stand_for(dtype, last):
    """bfloat16 and float8 show their exact values to eight digits."""
    array = np.array([1, -2.5, 0.1], as_dtype(dtype).numpy)
    assert printed(array) == f"[ 1.        , -2.50000000,  {last}]"


def test_higher_ranks_are_separated_by_blank_lines():
    """One blank line per rank above two; empty inner axes keep their brackets."""
    assert printed(np.zeros((2, 0, 3))) == "[[],\n\n []]"
    assert printed(np.arange(24.0).reshape(2, 2, 2, 3)) == block("""
        [[[[0. , 1. , 2. ],
           [3. , 4. , 5. ]],

          [[6. , 7. , 8. ],
           [9. , 10., 11.]]],


         [[[12., 13., 14.],
           [15., 16., 17.]],

          [[18., 19., 20.],
           [21., 22., 23.]]]]
    """)


def test_long_rows_wrap_at_the_line_width():
    """As many elements per line as fit into 80 columns."""
    assert printed(np.arange(40)) == block("""
        [0 , 1 , 2 , 3 , 4 , 5 , 6 , 7 , 8 , 9 , 10, 11, 12, 13, 14, 15, 16, 17,
         18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35,
         36, 37, 38, 39]
    """)


def test_large_tensors_show_their_edges():
    """Above 1000 elements only three at either end of each axis are shown, and they alone set the width."""
    assert printed(np.arange(1001)) == "[0   , 1   , 2   , ..., 998 , 999 , 1000]"
    middle = np.zeros(2000, np.int64)
    middle[1000] = 123456
    assert printed(middle) == "[0, 0, 0, ..., 0, 0, 0]"
    assert printed(np.arange(1001.0).reshape(1001, 1)).count("\n") == 6


def test_options_change_what_is_shown():
    """Precision, threshold, edge items, line width and scientific notation follow set_printoptions."""
    set_printoptions(precision=3, threshold=20, edgeitems=1)
    assert printed(np.arange(100)) == "[0 , ..., 99]"
    assert printed(np.complex64(1 - 2j)) == "(1.000-2.000j)"
    set_printoptions(sci_mode=True, linewidth=40)
    mixed = np.array([[1, -2.5], [100.25, 3]], "f4")
    assert printed(mixed) == "[[ 1.000e+00, -2.500e+00],\n [ 1.002e+02,  3.000e+00]]"
    assert printed(np.array([1 + 2j, -3.5j])) == "[ (1.000e+00+2.000e+00j),\n (-0.000e+00-3.500e+00j)]"
    assert OPTIONS.precision == 3


@pytest.mark.parametrize("wrong", [{"precision": 1.5}, {"threshold": True}, {"sci_mode": 1}, {"linewidth": "80"}])
def test_options_of_another_type_are_refused(wrong):
    """The error names the option."""
    with pytest.raises(TypeError, match=next(iter(wrong))):
        set_printoptions(**wrong)


def test_traced_tensors_print_without_a_value():
    """Printing a traced tensor shows its payload."""

    class Traced:
        shape, dtype, is_traced = (2,), as_dtype("float32"), True

        def __repr__(self) -> str:
            return "%3"

    assert repr(Tensor._wrap(Traced())) == (
        "Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,\n       %3)"
    )
