"""Element types and their names."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

from argosy_tensorcore import as_dtype, dtype, finfo, iinfo
from argosy_tensorcore.dtype import ALL_DTYPES


@pytest.mark.parametrize("d", ALL_DTYPES, ids=lambda d: d.name)
def test_every_spelling_names_the_same_object(d):
    """Names, numpy dtypes, numpy types, pickles and copies lead to the one DType."""
    spellings = [
        d,
        d.name,
        "paddle." + d.name,
        d.numpy,
        d.numpy.type,
        pickle.loads(pickle.dumps(d)),
        copy.deepcopy(d),
    ]
    assert all(as_dtype(x) is d for x in spellings)
    assert repr(d) == str(d) == "paddle." + d.name
    assert d.numpy.itemsize == d.itemsize
    assert d.numpy.isnative


def test_dtypes_equal_only_themselves():
    """As in Paddle, a dtype equals neither its name nor a numpy dtype."""
    assert dtype.float32 == dtype.float32
    assert dtype.float32 != "float32"
    assert dtype.float32 != np.float32
    assert len(set(ALL_DTYPES)) == len(ALL_DTYPES) == 17


def test_python_types_and_foreign_byte_order():
    """Python's number types read as numpy reads them; byte order does not matter."""
    assert [as_dtype(t).name for t in (bool, int, float, complex)] == [
        "bool",
        "int64",
        "float64",
        "complex128",
    ]
    assert as_dtype(">f4") is as_dtype(np.dtype(">f4")) is dtype.float32


@pytest.mark.parametrize("wrong", ["float31", None, object, "datetime64[s]", 3, [1]])
def test_other_things_are_no_dtype(wrong):
    """What names no element type raises a TypeError that lists those there are."""
    with pytest.raises(TypeError, match="bfloat16"):
        as_dtype(wrong)


def test_limits_of_floats_and_integers():
    """finfo and iinfo give the limits of numpy's and ml_dtypes' types."""
    assert finfo("float32").eps == np.finfo(np.float32).eps
    assert finfo("bfloat16").eps == 2**-7
    assert finfo("float8_e4m3fn").max == 448.0
    assert finfo("complex64").dtype == "float32"
    assert (iinfo("int8").min, iinfo("uint64").max, iinfo("int64").max) == (-128, 2**64 - 1, 2**63 - 1)
    with pytest.raises(TypeError, match="iinfo"):
        finfo("int32")
    with pytest.raises(TypeError, match="finfo"):
        iinfo("float32")


def test_naming_dtypes_loads_neither_numpy_nor_ml_dtypes():
    """The module of dtypes stands alone; ml_dtypes is loaded when an extension type's numpy dtype is read."""
    source = (
        "import sys, importlib.util as u;"
        f"spec = u.spec_from_file_location('d', {dtype.__file__!r}); d = u.module_from_spec(spec);"
        "spec.loader.exec_module(d); assert d.as_dtype('bfloat16').kind == 'f';"
        "assert 'numpy' not in sys.modules;"
        "import argosy_tensorcore as t; assert 'ml_dtypes' not in sys.modules;"
        "t.as_dtype('bfloat16').numpy; assert 'ml_dtypes' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", source], check=True)


def test_scripts_that_give_numpy_its_old_names():
    """``np.bool = bool`` of scripts written for numpy 1 makes numpy 2 forget the name of that dtype."""
    source = (
        "import numpy as np; np.bool, np.int, np.float = bool, int, float;"
        "import argosy_tensorcore as t;"
        "assert t.as_dtype(np.zeros(2, bool).dtype).name == t.as_dtype(np.bool).name == 'bool';"
        "assert t.as_dtype(np.dtype('>f4')).name == 'float32'"
    )
    subprocess.run([sys.executable, "-c", source], check=True)
