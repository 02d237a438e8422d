"""The one Tensor class: a payload (the data) and what the framework hangs on it.

Everything about data is defined here. All other methods and every operator are looked up by name when first
used, from the resolver that the operator library installs, and then live on the class like ordinary methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from argosy_tensorcore import conversion, dlpack, naming, printing
from argosy_tensorcore.dtype import DType
from argosy_tensorcore.operators import OPERATOR_NAMES, Operators, install_trampolines
from argosy_tensorcore.place import CPU, Place, as_place, place_of
from argosy_tensorcore.shape import Count, Size
from argosy_tensorcore.storage import Array, StridedArray
from argosy_tensorcore.suggestions import MissingAttribute

Resolver = Callable[[str], "object | None"]
_found: set[str] = set()  # methods put on the class so far


def set_method_resolver(resolve: Resolver | None, names: Callable[[], Iterable[str]] = tuple) -> None:
    """Install the function that finds methods and operators of Tensor by name (None where there is none).

    What it returns is set on the class, so it may be a function (which becomes a method), a property or a
    constant. ``names()`` lists what it can find, for ``dir``. Names that another resolver found are taken off
    the class and looked up anew; None uninstalls.
    """
    for name in _found:
        delattr(Tensor, name)
    _found.clear()
    install_trampolines(Tensor, find_method)
    _TensorType.resolve, _TensorType.names = resolve, staticmethod(names)


class _TensorType(type):
    """Tensor's class: looks up its unknown attributes (``Tensor.reshape``) with the resolver."""

    resolve: Resolver | None = None
    names: Callable[[], Iterable[str]] = tuple
    detached: Callable[[Any, Any], None] | None = None  # is told a tensor that wants a gradient and its detached one

    def __dir__(cls) -> list[str]:
        return sorted({*super().__dir__(), *cls.names()})

    if not TYPE_CHECKING:  # tools know the methods from typed_methods.pyi

        def __getattr__(cls, name: str) -> Any:
            method = find_method(name)
            if method is None:
                raise _no_method(name)
            return getattr(cls, name)


def find_method(name: str) -> object | None:
    """Resolve a method of Tensor by name and cache it on the class; None when nothing provides it."""
    if name[:2] == "__" and name not in OPERATOR_NAMES and name != "__array_namespace__":
        return None
    method = None if _TensorType.resolve is None else _TensorType.resolve(name)
    if method is None:
        method = _rare_member(name)
    if method is not None:
        setattr(Tensor, name, method)
        _found.add(name)
    return method


def _rare_member(name: str) -> object | None:
    from argosy_tensorcore.rare_members import MEMBERS

    return MEMBERS.get(name)


def _no_method(name: str) -> AttributeError:
    if name in vars(Tensor):  # it is defined, and raised AttributeError itself
        reason = "the tensor is uninitialised, or its payload does not offer it"
        return AttributeError(f"Tensor.{name} is not available: {reason}")
    if _TensorType.resolve is None:
        return AttributeError(f"Tensor has no attribute {name!r}: operators come with argosy-phi-ops, not loaded")
    return MissingAttribute(f"Tensor has no attribute {name!r}", name, lambda: dir(Tensor))


# Slots that are left empty when a tensor is made, and what reading them gives.
_EMPTY_SLOTS: dict[str, Any] = {
    "_grad": None, "_gradient_blockers": None, "_slot": 0, "_hooks": None, "_name": None,
    "persistable": False, "is_parameter": False,
}  # fmt: skip


class Tensor(Operators, metaclass=_TensorType):
    """A multi-dimensional array of one element type, with a place in the autograd graph. Final: never
    subclassed.

    payload: the data (``StridedArray``; a tracer, a distributed or a sparse tensor has a payload class of its
    own); stop_gradient: True when no gradient flows to it; ``_grad``, ``_node``, ``_slot``, ``_hooks`` belong
    to autograd; ``_gradient_blockers`` says what has kept gradients from passing on the way to it, for errors.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_grad",
        "_gradient_blockers",
        "_hooks",
        "_name",
        "_node",
        "_slot",
        "is_parameter",
        "payload",
        "persistable",
        "stop_gradient",
    )  # fmt: skip
    __array_ufunc__ = None  # ndarray + tensor runs the tensor's operator; np.sin(tensor) is a TypeError
    __hash__ = object.__hash__
    payload: Any
    stop_gradient: bool
    persistable: bool
    is_parameter: bool
    _node: Any
    _slot: int
    _grad: Tensor | None
    _hooks: Any
    _name: str | None
    _gradient_blockers: Any

    def __init__(
        self,
        data: Any = None,
        dtype: object = None,
        place: object = None,
        stop_gradient: bool = True,
        *,
        value: Any = None,
        name: str | None = None,
        persistable: bool = False,
        zero_copy: bool = False,
    ) -> None:
        """A tensor that copies data (an array, a number or nested lists); ``None`` gives shape [0]. ``value`` is
        another word for data. With ``zero_copy`` an array in host memory of that dtype is shared, not copied."""
        given = value if data is None else data
        self.payload = conversion.payload_of(() if given is None else given, dtype, as_place(place), zero_copy)
        self.stop_gradient = stop_gradient
        self._node = self._gradient_blockers = None
        self._name = naming.generate("generated_tensor") if name is None else name
        if persistable:
            self.persistable = True

    def __init_subclass__(cls, **_: object) -> NoReturn:
        raise TypeError("Tensor is final: wrap a tensor, or give it another payload class, instead of subclassing")

    @staticmethod
    def _wrap(payload: Any, stop_gradient: bool = True) -> Tensor:
        """The tensor of a payload, without copying: how results of operators are made."""
        tensor = _new(Tensor)
        tensor.payload = payload
        tensor.stop_gradient = stop_gradient
        tensor._node = tensor._gradient_blockers = None
        return tensor

    if not TYPE_CHECKING:  # tools know the methods from typed_methods.pyi

        def __getattr__(self, name: str) -> Any:
            """Slots not yet filled, then methods that were never used before."""
            if name in _EMPTY_SLOTS:
                value = _EMPTY_SLOTS[name]
                setattr(self, name, value)
                return value
            if name not in vars(Tensor) and find_method(name) is None:
                raise _no_method(name)
            try:
                return object.__getattribute__(self, name)  # another thread may have found the method first
            except AttributeError:
                raise _no_method(name) from None

    def __dir__(self) -> list[str]:
        return sorted({*dir(Tensor), *self.__dict__})

    # ---- what it is

    @property
    def shape(self) -> Size:
        """Sizes of the axes."""
        return Size(self.payload.shape)

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.payload.dtype  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.payload.shape)

    def dim(var: Tensor) -> int:
        """Number of axes."""
        return len(var.payload.shape)

    ndimension = dim

    @property
    def size(self) -> Any:
        """Number of elements; called, the shape (``x.size()``) or the size of one axis (``x.size(0)``)."""
        return Count.of_shape(self.payload.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return Size(self.payload.shape).numel() * self.dtype.itemsize

    @property
    def place(self) -> Place:
        """Where the data is."""
        payload = self.payload
        if type(payload) is StridedArray and payload.host_owned:
            return CPU
        device = getattr(payload, "device", None)  # a tracer need not know
        return CPU if device is None else place_of(device)

    @property
    def device(self) -> str:
        """Where the data is, as a string: ``'cpu'``, ``'gpu:0'``."""
        return self.place.name

    @property
    def strides(self) -> list[int]:
        """Elements between neighbours along each axis."""
        return list(self.payload.strides)

    def get_strides(self) -> list[int]:
        """Elements between neighbours along each axis."""
        return list(self.payload.strides)

    def stride(self, dim: int | None = None) -> int | list[int]:
        """Elements between neighbours along one axis, or along all of them."""
        return list(self.payload.strides) if dim is None else int(self.payload.strides[dim])

    @property
    def offset(self) -> int:
        """Bytes between the start of the storage and the first element."""
        return int(self.payload.offset) * self.dtype.itemsize

    def is_contiguous(self) -> bool:
        """True when the elements lie in row-major order without gaps."""
        return bool(self.payload.contiguous)

    def data_ptr(self) -> int:
        """Address of the first element. Host devices only."""
        return int(self.payload.address)

    @property
    def inplace_version(self) -> int:
        """How often the storage of this tensor was written in place."""
        return int(self.payload.version)

    def _bump_inplace_version(self) -> None:
        self.payload.bump_version()

    def is_floating_point(x: Tensor) -> bool:
        """True for floating element types."""
        return x.dtype.kind == "f"

    def is_complex(x: Tensor) -> bool:
        """True for complex element types."""
        return x.dtype.kind == "c"

    def is_integer(x: Tensor) -> bool:
        """True for signed and unsigned integer element types."""
        return x.dtype.kind in "iu"

    def is_dense(self) -> bool:
        """True when every element is stored."""
        return type(self.payload) is StridedArray

    # ---- what the framework hangs on it

    @property
    def name(self) -> str:
        """Unique name, generated when first asked for."""
        if self._name is None:
            self._name = naming.generate("eager_tmp")
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = name

    @property
    def requires_grad(self) -> bool:
        """The negation of ``stop_gradient``."""
        return not self.stop_gradient

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        self.stop_gradient = not wanted

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set whether gradients are wanted; returns the tensor."""
        self.stop_gradient = not requires_grad
        return self

    @property
    def trainable(self) -> bool:
        """Of a parameter: whether optimizers change it. The negation of ``stop_gradient``, as in Paddle."""
        return not self.stop_gradient

    @trainable.setter
    def trainable(self, wanted: bool) -> None:
        self.stop_gradient = not wanted

    @property
    def is_leaf(self) -> bool:
        """True when no recorded operator produced it."""
        return self._node is None

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient, or None."""
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if type(value) is not Tensor:
                raise TypeError(f"a gradient is a Tensor or None, not {type(value).__name__}")
            if value.payload.shape != self.payload.shape:
                shapes = list(self.shape), list(value.shape)
                raise ValueError(f"the gradient of a tensor of shape {shapes[0]} cannot have shape {shapes[1]}")
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    def detach(self) -> Tensor:
        """A tensor of the same memory outside the graph."""
        payload = self.payload
        if type(payload) is StridedArray and payload._storage is None:
            _ = payload.storage  # so that both count in-place writes together
        made = Tensor._wrap(payload)
        made._gradient_blockers = self._gradient_blockers
        if _TensorType.detached is not None and not self.stop_gradient:
            _TensorType.detached(self, made)
        return made

    # ---- leaving the framework

    def numpy(self) -> Array:
        """The data as an ndarray of its own; bfloat16 and float8 as bit patterns (uint16, int8). No elements (the
        shape and a last axis of 0) of a distributed tensor that this process has no part of.
        """
        return conversion.bit_pattern(conversion.shown_array(self, "numpy()")).copy()

    def item(self, *index: int) -> Any:
        """The one element, or that at a flat or full index, as a Python number. Raises NotScalarError."""
        payload = self.payload
        if not index and type(payload) is StridedArray and not payload.ndim:
            try:
                return payload.ndarray.item()
            except BufferError:  # the host cannot see it
                pass
        return conversion.item(self, index)

    def tolist(self) -> Any:
        """Nested lists of Python numbers; of a 0-D tensor the number."""
        return conversion.shown_array(self, "tolist()").tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return conversion.as_ndarray(self, dtype, copy)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        return dlpack.to_dlpack(self, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.dlpack_device(self)

    def __len__(self) -> int:
        if not self.payload.shape:
            raise TypeError("len() of a 0-D tensor")
        return int(self.payload.shape[0])

    def __iter__(self) -> Iterator[Tensor]:
        if not self.payload.shape:
            raise TypeError("iteration over a 0-D tensor")
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(conversion.scalar(self, "bool()"))

    def __int__(self) -> int:
        return int(conversion.scalar(self, "int()"))

    def __float__(self) -> float:
        return float(conversion.scalar(self, "float()"))

    def __complex__(self) -> complex:
        return complex(conversion.scalar(self, "complex()"))

    def __index__(self) -> int:
        if self.dtype.kind not in "iub":
            raise TypeError(f"only integer tensors can be an index, not {self.dtype.name}")
        return int(conversion.scalar(self, "an index"))

    def __repr__(self) -> str:
        return printing.format_tensor(self)

    def __format__(self, spec: str) -> str:
        as_number = not self.ndim or (spec and self.size == 1)
        number = self.item() if as_number else None  # also None where this rank has no part of the tensor
        return object.__format__(self, spec) if number is None else format(number, spec)

    # ---- writing it

    def set_value(self, value: Any) -> None:
        """Overwrite the data in place with a value of the same shape and dtype; no gradient is recorded."""
        conversion.write(self, value, "set_value", cast=False)

    def copy_(self, other: Any, blocking: bool = True) -> Tensor:
        """Overwrite the data in place, cast to this dtype; no gradient is recorded. Returns the tensor."""
        conversion.write(self, other, "copy_", cast=True)
        return self

    @property
    def data(self) -> Tensor:
        """The same memory outside of the graph, as :meth:`detach` gives it; assigning takes over another payload."""
        return self.detach()

    @data.setter
    def data(self, other: Tensor) -> None:
        self.payload = other.payload

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return conversion.deep_copy(self, memo)

    def __copy__(self) -> Tensor:
        return conversion.shallow_copy(self)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuild, conversion.pickle_parts(self), self.__dict__ or None


def _rebuild(bits: Array, dtype: str, name: str, flags: tuple[bool, bool, bool]) -> Tensor:
    """The tensor of a pickle."""
    tensor = Tensor._wrap(conversion.payload_of_bits(bits, dtype), bool(flags[0]))
    tensor._name, tensor.persistable, tensor.is_parameter = str(name), bool(flags[1]), bool(flags[2])
    return tensor


_new: Callable[[type[Tensor]], Tensor] = object.__new__
install_trampolines(Tensor, find_method)


class _ParameterType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return type(instance) is Tensor and instance.is_parameter

    def __call__(cls, data: Any, dtype: object = None, name: str | None = None, trainable: bool = True) -> Tensor:
        parameter = data if type(data) is Tensor else Tensor(data, dtype)
        parameter.stop_gradient, parameter.persistable, parameter.is_parameter = not trainable, True, True
        parameter._name = name or naming.generate("param")
        return parameter


class Parameter(metaclass=_ParameterType):
    """A tensor that a model learns. Not a class of its own: ``isinstance(t, Parameter)`` asks for
    ``t.is_parameter``, and ``Parameter(data)`` marks a tensor (its own when data is one) as such: persistable
    and, if trainable, in the graph.
    """
