"""Tensors as data: attributes, conversions, copies, methods that come by name."""

import copy
import pickle

import numpy as np
import pytest

from argosy_tensorcore import (
    DType,
    NotScalarError,
    Parameter,
    Size,
    StridedArray,
    Tensor,
    as_dtype,
    set_method_resolver,
)
from argosy_tensorcore.dtype import ALL_DTYPES, set_default_dtype
from argosy_tensorcore.operators import OPERATOR_NAMES

SHAPES = [(), (0,), (3,), (2, 0, 3), (2, 3), (1, 1)]


@pytest.fixture
def resolver():
    """Puts the resolver in use aside for one test, and gives the function that installs another."""
    in_use, names = type(Tensor).resolve, type(Tensor).names
    set_method_resolver(None)
    yield set_method_resolver
    set_method_resolver(in_use, names)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=lambda d: d.name)
class TestEveryDtypeAndShape:
    """0-D and 0-size tensors of every dtype behave like all others."""

    def make(self, dtype: DType, shape: tuple[int, ...]) -> tuple[np.ndarray, Tensor]:
        array = (np.arange(np.prod(shape)).reshape(shape) % 2).astype(dtype.numpy)
        return array, Tensor(array)

    def test_attributes_say_what_the_array_is(self, dtype, shape):
        """Shape, dtype, sizes and place follow from the data."""
        array, tensor = self.make(dtype, shape)
        assert tensor.shape == list(shape) == Size(shape)
        assert tensor.dtype is dtype
        assert (tensor.ndim, tensor.size, tensor.nbytes) == (array.ndim, array.size, array.nbytes)
        assert tensor.place.is_cpu_place()
        assert tensor.device == "cpu"
        assert tensor.is_contiguous()
        assert tensor.stop_gradient
        assert tensor.is_leaf
        assert tensor.grad is None

    def test_values_survive_copying_pickling_and_printing(self, dtype, shape):
        """A deep copy and a pickle hold equal bits in memory of their own; printing never fails."""
        array, tensor = self.make(dtype, shape)
        for twin in (copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor)), Tensor(tensor)):
            assert twin.dtype is dtype
            assert twin.payload.array().tobytes() == array.tobytes()
            assert twin.shape == tensor.shape
            assert not np.shares_memory(twin.payload.array(), tensor.payload.array())
        assert repr(tensor).startswith(f"Tensor(shape={list(shape)}, dtype={dtype.name}, place=Place(cpu)")

    def test_numpy_is_a_copy_and_tolist_matches(self, dtype, shape):
        """numpy() gives an array of its own (bits for types numpy lacks), tolist() Python numbers."""
        array, tensor = self.make(dtype, shape)
        out = tensor.numpy()
        assert not np.shares_memory(out, tensor.payload.array())
        assert out.shape == shape
        if not dtype.in_numpy:
            assert out.dtype == {1: np.int8, 2: np.uint16}[dtype.itemsize]
        else:
            np.testing.assert_array_equal(out, array)
        assert tensor.tolist() == array.tolist()

    def test_set_value_writes_in_place(self, dtype, shape):
        """set_value changes the memory that views share and counts as one in-place write."""
        _, tensor = self.make(dtype, shape)
        twin = tensor.detach()
        tensor.set_value(np.ones(shape, dtype.numpy))
        assert twin.tolist() == np.ones(shape, dtype.numpy).tolist()
        assert (tensor.inplace_version, twin.inplace_version) == (1, 1)


def test_a_wrapped_payload_shares_its_array():
    """A tensor made of a payload shows the same memory."""
    array = np.zeros(3, np.float32)
    tensor = Tensor._wrap(StridedArray.from_array(array))
    array[1] = 5
    assert tensor.tolist() == [0.0, 5.0, 0.0]


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1, "int64"),
        (1.5, "float32"),
        (True, "bool"),
        (1j, "complex64"),
        ([[1, 2], [3, 4]], "int64"),
        ([1, 2.0], "float32"),
        ([], "float32"),
        (np.float64(2), "float64"),
        (np.zeros(2, np.float16), "float16"),
        ([np.float64(2)], "float32"),
    ],
)
def test_data_picks_its_dtype(data, dtype):
    """Python floats take the default dtype, arrays and numpy scalars keep theirs."""
    assert Tensor(data).dtype is as_dtype(dtype)


def test_the_default_dtype_can_be_changed():
    """set_default_dtype moves Python floats and complexes, and refuses integers."""
    try:
        set_default_dtype("float64")
        assert Tensor([1.5]).dtype is as_dtype("float64")
        assert Tensor([1j]).dtype is as_dtype("complex128")
    finally:
        set_default_dtype("float32")
    with pytest.raises(TypeError, match="default dtype"):
        set_default_dtype("int32")


def test_ragged_data_is_refused():
    """Data that is no rectangle of numbers raises ValueError or TypeError."""
    with pytest.raises((ValueError, TypeError)):
        Tensor([[1, 2], [3]])
    with pytest.raises((ValueError, TypeError), match="tensor"):
        Tensor(["a"])


def test_scalars_become_python_numbers():
    """A tensor of one element converts to bool, int, float, complex and, when an integer, to an index."""
    assert [10, 20, 30][Tensor(1)] == 20
    assert int(Tensor([[2.5]])) == 2
    assert float(Tensor(3)) == 3.0
    assert complex(Tensor(1 + 2j)) == 1 + 2j
    assert bool(Tensor([True]))
    assert f"{Tensor(1.23456):.2f}" == "1.23"
    assert Tensor([1, 2, 3]).item(1) == 2
    assert Tensor([[1, 2], [3, 4]]).item(1, 0) == 3
    assert type(Tensor(np.float32(1.5)).item()) is float
    with pytest.raises(TypeError, match="float32"):
        [10][Tensor(0.0)]
    with pytest.raises(IndexError, match="out of range"):
        Tensor([1, 2]).item(2)


@pytest.mark.parametrize("convert", [bool, int, float, complex, lambda t: t.item()])
@pytest.mark.parametrize("data", [[], [1, 2]])
def test_other_tensors_are_no_scalars(convert, data):
    """Several or no elements raise a ValueError that is, as in Paddle, an AssertionError, too."""
    with pytest.raises(NotScalarError, match="shape") as caught:
        convert(Tensor(data, "int64"))
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, AssertionError)


def test_len_and_iteration_need_an_axis():
    """A 0-D tensor has no length and cannot be iterated."""
    assert len(Tensor([[1], [2]])) == 2
    with pytest.raises(TypeError, match="0-D"):
        len(Tensor(1))
    with pytest.raises(TypeError, match="0-D"):
        iter(Tensor(1))


def test_numpy_sees_tensors_but_keeps_its_ufuncs_off():
    """np.asarray shares memory; ufuncs raise TypeError because of __array_ufunc__ = None."""
    tensor = Tensor([1.0, 2.0])
    assert np.shares_memory(np.asarray(tensor), tensor.payload.array())
    assert np.sum(np.asarray(tensor)) == 3.0
    assert np.asarray(tensor, np.float64).dtype == np.float64
    with pytest.raises(TypeError):
        np.sin(tensor)
    with pytest.raises(ValueError, match="copy"):
        np.array(tensor, dtype=np.int32, copy=False)


def test_names_are_generated_when_asked_for():
    """User tensors, results and parameters are numbered apart; names can be set."""
    assert Tensor(1).name.startswith("generated_tensor_")
    result = Tensor._wrap(StridedArray.from_array(np.zeros(1)))
    assert result.name.startswith("eager_tmp_")
    assert result.name == result.name
    result.name = "mine"
    assert result.name == "mine"


def test_requires_grad_mirrors_stop_gradient():
    """requires_grad and trainable are the negation of stop_gradient, both ways."""
    tensor = Tensor(1.0)
    tensor.requires_grad = True
    assert not tensor.stop_gradient
    assert tensor.trainable
    assert tensor.requires_grad_(False) is tensor
    assert tensor.stop_gradient


def test_a_gradient_has_the_shape_of_its_tensor():
    """Assigning grad checks the type and shape; None and del drop it."""
    tensor = Tensor([1.0, 2.0])
    tensor.grad = Tensor([3.0, 4.0])
    assert tensor.grad.tolist() == [3.0, 4.0]
    with pytest.raises(ValueError, match="shape"):
        tensor.grad = Tensor([1.0])
    with pytest.raises(TypeError, match="ndarray"):
        tensor.grad = np.zeros(2)
    del tensor.grad
    assert tensor.grad is None


def test_parameters_are_tensors_with_a_flag():
    """isinstance(t, Parameter) asks for is_parameter; the class of every tensor is Tensor."""
    parameter = Parameter([1.0], name="w")
    assert type(parameter) is Tensor
    assert isinstance(parameter, Parameter)
    assert not isinstance(Tensor(1), Parameter)
    assert (parameter.name, parameter.persistable, parameter.stop_gradient) == ("w", True, False)
    parameter.optimize_attr = {"learning_rate": 0.5}
    twin = pickle.loads(pickle.dumps(parameter))
    assert isinstance(twin, Parameter)
    assert (twin.name, twin.optimize_attr) == ("w", {"learning_rate": 0.5})


def test_tensor_is_final():
    """Subclassing raises."""
    with pytest.raises(TypeError, match="final"):
        type("Sub", (Tensor,), {})


def test_set_value_checks_shape_and_dtype():
    """A misshaped or mistyped value is refused and leaves data and version alone; copy_ casts."""
    tensor = Tensor([1.0, 2.0])
    with pytest.raises(ValueError, match="shape"):
        tensor.set_value(np.zeros((3,), np.float32))
    with pytest.raises(ValueError, match="float64"):
        tensor.set_value(np.zeros((2,), np.float64))
    assert (tensor.tolist(), tensor.inplace_version) == ([1.0, 2.0], 0)
    assert tensor.copy_(Tensor([3, 4])).tolist() == [3.0, 4.0]


def test_tensors_inside_a_graph_are_copied_out_of_it_and_not_pickled():
    """The deep copy of a non-leaf is a leaf, as in Paddle; pickle raises RuntimeError."""
    tensor = Tensor(1.0, stop_gradient=False)
    tensor._node, tensor._slot = object(), 1
    twin = copy.deepcopy(tensor)
    assert (twin._node, twin._slot, twin.stop_gradient) == (None, 0, False)
    assert not twin.payload.shares_storage(tensor.payload)
    with pytest.raises(RuntimeError, match="leaf"):
        pickle.dumps(tensor)


def test_deepcopy_takes_attributes_along_and_no_gradient():
    """A copied parameter keeps its flags and its own attributes; it has no gradient yet, as in Paddle."""
    tensor = Parameter([1.0])
    tensor.grad = Tensor([2.0])
    tensor.optimize_attr = {"learning_rate": 0.5}
    twin = copy.deepcopy(tensor)
    tensor.optimize_attr["learning_rate"] = 1.0
    assert isinstance(twin, Parameter)
    assert twin.grad is None
    assert tensor.grad.tolist() == [2.0]
    assert twin.optimize_attr == {"learning_rate": 0.5}


def test_methods_are_resolved_once_and_live_on_the_class(resolver):
    """The resolver is asked once per name; what it returns works on tensors and on the class."""
    asked = []
    table = {"double": lambda t: 2 * t.item(), "T": property(lambda t: "transposed"), "_private": 7}

    def resolve(name: str) -> object | None:
        asked.append(name)
        return table.get(name)

    resolver(resolve)
    assert [Tensor(3).double() for _ in range(3)] == [6, 6, 6]
    assert Tensor.double(Tensor(4)) == 8
    assert Tensor(1).T == "transposed"
    assert Tensor._private == 7
    assert asked == ["double", "T", "_private"]
    resolver(resolve, table.keys)
    assert {"double", "T", "shape"} <= set(dir(Tensor(1))) & set(dir(Tensor))
    with pytest.raises(AttributeError, match="no_such"):
        Tensor(1).no_such()
    with pytest.raises(AttributeError, match="no_such"):
        _ = Tensor.no_such
    assert not hasattr(Tensor(1), "__array_interface__")


@pytest.mark.parametrize("name", sorted(OPERATOR_NAMES))
def test_operators_replace_their_trampolines(resolver, name):
    """The first use of an operator resolves it; later uses go straight to it."""
    calls = []
    resolver(lambda asked: (lambda *args: calls.append(asked)) if asked == name else None)
    trampoline = vars(Tensor)[name]
    for _ in range(2):
        getattr(Tensor, name)(Tensor(1), Tensor(2))
    assert calls == [name, name]
    assert vars(Tensor)[name] is not trampoline
    resolver(None)
    assert vars(Tensor)[name].__qualname__ == f"Tensor.{name}"


def test_operators_without_a_library_say_so(resolver):
    """Without a resolver arithmetic names the missing package; comparison with None still answers."""
    with pytest.raises(TypeError, match="argosy-phi-ops"):
        Tensor(1) + 1
    with pytest.raises(AttributeError, match="argosy-phi-ops"):
        Tensor(1).reshape([1])
    assert (Tensor(1) == None) is False  # noqa: E711
    assert (Tensor(1) != None) is True  # noqa: E711


def test_rare_members_of_paddle_are_there(resolver):
    """Paddle's looks at internals work, without an operator library, too."""
    tensor = Tensor([1.0, 2.0])
    other = Tensor([1.0, 2.0])
    assert tensor.is_same_shape(other)
    assert tensor._md5sum() == other._md5sum() != Tensor([2.0, 1.0])._md5sum()
    assert not tensor._is_shared_buffer_with(other)
    tensor._share_buffer_to(other)
    assert tensor._is_shared_buffer_with(other)
    assert (tensor.get_device(), tensor.is_cuda, tensor.is_cpu, tensor._place_str) == (-1, False, True, "Place(cpu)")
    assert (tensor._numel(), tensor._inplace_version(), tensor._is_initialized()) == (2, 0, True)
    assert tensor.gradient() is None
    tensor.grad = Tensor([3.0, 4.0])
    assert tensor.gradient().tolist() == [3.0, 4.0]


class TracedPayload:
    """The least a tracer's payload must be."""

    shape, dtype, ndim, is_traced = (2, 3), as_dtype("float32"), 2, True


@pytest.mark.parametrize("read", [bool, int, float, np.asarray, lambda t: t.numpy(), lambda t: t.item(), Tensor.tolist])
def test_traced_tensors_have_no_value(read):
    """Reading the value of a traced tensor raises a TypeError that names its shape and the way out."""
    with pytest.raises(TypeError, match=r"\[2, 3\].*traced"):
        read(Tensor._wrap(TracedPayload()))


def test_what_a_payload_does_not_offer_is_named():
    """An attribute of data that the payload lacks is an AttributeError naming it, not a hunt for a method."""
    with pytest.raises(AttributeError, match=r"Tensor\.strides is not available"):
        _ = Tensor._wrap(TracedPayload()).strides


def test_a_tracer_may_produce_the_value():
    """A payload with concretize gives the value that a graph break computed; attributes need no value."""

    class Breaking(TracedPayload):
        def concretize(self, purpose: str) -> np.ndarray:
            asked.append(purpose)
            return np.array([7.0], np.float32)

    asked: list[str] = []
    tensor = Tensor._wrap(Breaking())
    assert (tensor.shape, tensor.dtype.name, tensor.ndim) == ([2, 3], "float32", 2)
    assert float(tensor) == 7.0
    assert asked == ["float()"]


@pytest.mark.parametrize("data", ["a", b"1.5"])
def test_text_is_no_tensor(data):
    """Text raises TypeError, as in Paddle."""
    with pytest.raises(TypeError, match="number"):
        Tensor(data)


def test_tensors_in_a_list_keep_their_dtype():
    """A list that holds a tensor takes its dtype, where one of numbers takes the default."""
    assert Tensor([Tensor(np.float64(1)), 2.0]).dtype is as_dtype("float64")
    assert Tensor([[Tensor(np.float16(1))], [Tensor(np.float16(2))]]).dtype is as_dtype("float16")
    assert Tensor([np.float64(1), 2.0]).dtype is as_dtype("float32")


def test_an_array_is_shared_where_that_is_asked_for():
    array = np.ones((2, 3), np.float32)
    x = Tensor(value=array, zero_copy=True, name="w", persistable=True, stop_gradient=False)
    array[0, 0] = 5
    assert x.numpy()[0, 0] == 5
    assert (x.name, x.persistable, x.stop_gradient) == ("w", True, False)
    array.flags.writeable = False
    others = [Tensor(array), Tensor(array, zero_copy=True), Tensor(array, "float64", zero_copy=True)]
    others.append(Tensor(array.astype(">f4"), zero_copy=True))
    array.flags.writeable = True
    array[0, 0] = 7
    assert [float(y.numpy()[0, 0]) for y in others] == [5.0] * 4
    assert others[2].dtype.name == "float64"
