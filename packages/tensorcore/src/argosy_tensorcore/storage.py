"""Storage and strided views of it: the payload of an ordinary tensor.

A ``StridedArray`` that wraps a fresh ndarray costs one object. Whatever dispatch does not need (strides, address
and the ``Storage`` itself) is worked out when first asked for, and kept. Views of a tensor share its Storage
and with it one version counter.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from argosy_tensorcore.dtype import DType, as_dtype
from argosy_tensorcore.shape import contiguous_strides, extent, is_contiguous

if TYPE_CHECKING:
    from argosy_hwadapt import Buffer, Device


class ArrayType:
    """The element type and shape of an array. Equal ones are the same object (until very many have been met), so that
    what was planned for operands of some types is found again by identity.

    dtype: DType; shape: tuple of ints; ndim: number of axes; differentiable: whether elements are real or complex
    numbers of floating kind; device: what holds the array, where that is no host device, else None.
    """

    __slots__ = ("device", "differentiable", "dtype", "ndim", "shape")

    def __init__(self, dtype: DType, shape: tuple[int, ...], device: Device | None = None) -> None:
        self.device = device
        self.dtype = dtype
        self.shape = shape
        self.ndim = len(shape)
        self.differentiable = dtype.kind in "fc"

    def __repr__(self) -> str:
        return f"ArrayType({self.dtype.name}, {list(self.shape)})"


Array = np.ndarray[Any, Any]
_materialising = allocate_lock()
_TYPES_KEPT = 1 << 16
_array_types: dict[tuple[Any, ...], ArrayType] = {}  # by numpy's dtype, shape and perhaps device, as they are met


def host_device() -> Device:
    """The host as a device, opened on first use."""
    from argosy_hwadapt import device

    return device("cpu", 0)


class Storage:
    """A stretch of device memory shared by all views of it, with the count of in-place writes to it.

    nbytes: its size; version: bumped by every in-place write, so that a value saved for a gradient can be
    checked; buffer: the device's handle on it; device: where it lives. Storage of a host ndarray adopts it
    when ``buffer`` is read.
    """

    __slots__ = ("__weakref__", "_buffer", "_owner", "_source", "nbytes", "version")
    _owner: Array | None
    _source: bytearray  # of native code, which makes no array before somebody asks for it

    def __init__(self, buffer: Buffer | None, owner: Array | None = None) -> None:
        self._buffer = buffer
        self._owner = owner  # host memory as a flat uint8 array, where it came as an ndarray
        self.nbytes: int = owner.nbytes if owner is not None else buffer.nbytes  # type: ignore[union-attr]
        self.version = 0

    def __getattr__(self, name: str) -> Any:
        """Show memory of native code as an array, on first use."""
        if name != "_owner":
            raise AttributeError(f"Storage has no attribute {name!r}")
        self._owner = owner = np.frombuffer(self._source, np.uint8)
        return owner

    @property
    def buffer(self) -> Buffer:
        """The buffer on the device."""
        if self._buffer is None:
            with _materialising:
                self._buffer = self._buffer or host_device().adopt(self._owner)
        return self._buffer

    @property
    def device(self) -> Device:
        """The opened device that holds the memory."""
        return host_device() if self._buffer is None else self._buffer.device

    def host_bytes(self) -> Any:
        """The memory as a writable host buffer of bytes. Raises BufferError when the host cannot see it."""
        if self._owner is not None:
            return self._owner
        view = self.device.host_view(self.buffer)
        if view is None:
            raise BufferError(
                f"the data is on {self.device.name!r}, whose memory the host cannot see; copy it to cpu first"
            )
        return view

    def __repr__(self) -> str:
        return f"Storage(nbytes={self.nbytes}, version={self.version})"


class StridedArray:
    """A strided view of a storage: the payload of an ordinary tensor. Immutable but for the data it shows.

    ``StridedArray(ndarray)`` trusts its argument to be a writable, aligned, native ``np.ndarray`` of a supported
    dtype that nobody else owns, as fresh results of kernels are; ``from_array`` checks.

    ndarray: zero-copy view for the host (what ``array()`` returns; reading it raises BufferError when the
    host cannot see the memory); dtype: DType; shape: tuple of ints; ndim; size: element count; strides and
    offset: in elements; contiguous: row-major without gaps; nbytes: of the elements; address: of the first
    element (host devices only); array_type: dtype and shape as one object (:class:`ArrayType`).
    """

    __slots__ = (
        "_memory", "_storage", "address", "array_type", "contiguous", "dtype", "nbytes", "ndarray", "ndim", "offset",
        "shape", "size", "strides",
    )  # fmt: skip
    is_traced = False
    ndarray: Array
    array_type: ArrayType
    dtype: DType
    shape: tuple[int, ...]
    ndim: int
    size: int
    nbytes: int
    strides: tuple[int, ...]
    offset: int
    contiguous: bool
    address: int
    _storage: Storage | None
    _memory: bytearray | None  # of a result of native code, which makes no array before somebody asks for it

    def __init__(self, ndarray: Array) -> None:
        self.ndarray = ndarray
        self._storage = None
        try:
            self.array_type = known = _array_types[ndarray.dtype, ndarray.shape]
        except KeyError:
            self.array_type = known = _learn(ndarray.dtype, ndarray.shape)
        self.dtype = known.dtype
        self.shape = known.shape
        self.ndim = known.ndim

    def __getattr__(self, name: str) -> Any:
        """Fill a slot on first use."""
        derive = _DERIVE.get(name)
        if derive is None:
            raise AttributeError(f"StridedArray has no attribute {name!r}")
        value = derive(self)
        setattr(self, name, value)
        return value

    # ---- making one

    @staticmethod
    def from_array(a: Any, device: Device | None = None) -> StridedArray:
        """The payload that shows a's data, shared wherever possible.

        Copied are read-only and unaligned arrays, those in foreign byte order and those whose strides are not
        whole elements. numpy scalars become 0-D. With a device whose memory the host cannot share, the data
        goes there. Raises TypeError for dtypes that tensors do not have.
        """
        if type(a) is not np.ndarray:
            a = np.asarray(a)
        if not (a.flags.writeable and a.dtype.isnative and (a.base is None or _is_shareable(a))):
            a = np.array(a, as_dtype(a.dtype).numpy, order="C")
        payload = StridedArray(a)
        return payload if device is None or device.name == "cpu" else _copy_to_device(payload, device)

    @staticmethod
    def empty(shape: Sequence[int], dtype: object, device: Device | None = None) -> StridedArray:
        """Uninitialised contiguous memory of its own."""
        element = as_dtype(dtype)
        if device is None:
            return StridedArray(np.empty(shape, element.numpy))
        nbytes = prod(shape) * element.itemsize
        return StridedArray.over_storage(Storage(device.allocate(nbytes)), element, shape)

    @staticmethod
    def over_storage(
        storage: Storage,
        dtype: object,
        shape: Sequence[int],
        strides: Sequence[int] | None = None,
        offset: int = 0,
    ) -> StridedArray:
        """A view of storage; strides and offset in elements. Raises ValueError when out of bounds."""
        view = object.__new__(StridedArray)
        view.dtype, view.shape, view.offset, view._storage = as_dtype(dtype), tuple(shape), offset, storage
        view.strides = contiguous_strides(shape) if strides is None else tuple(strides)
        low, high = extent(view.shape, view.strides)
        held = storage.nbytes // view.dtype.itemsize
        if offset + low < 0 or offset + high > held:
            raise ValueError(
                f"a view of shape {list(shape)} with strides {list(view.strides)} at offset {offset} "
                f"reaches elements {offset + low} to {offset + high} of a storage that holds {held} of "
                f"{view.dtype.name}"
            )
        return view

    def view(self, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> StridedArray:
        """Another view of the same storage and dtype; offset counts from this view's first element."""
        return StridedArray.over_storage(self.storage, self.dtype, shape, strides, self.offset + offset)

    def views_by(self, kernel: Callable[[Array], Any]) -> list[StridedArray] | None:
        """The views that ``kernel`` makes of an array, one or a tuple of them, as views of this payload, whose elements
        are not looked at; None where it makes copies."""
        span, elements, start = _span(self)
        made = kernel(elements)
        arrays = made if isinstance(made, tuple) else (made,)
        if not all(type(a) is np.ndarray and (not a.size or np.may_share_memory(a, span)) for a in arrays):
            return None
        begin = _address_of(span) - start
        return [
            StridedArray.over_storage(
                self.storage, a.dtype, a.shape, [stride // a.itemsize for stride in a.strides],
                (_address_of(a) - begin) // a.itemsize if a.size else 0,
            )
            for a in arrays
        ]  # fmt: skip

    def share(self, ndarray: Array) -> StridedArray:
        """The payload of a numpy view of this payload's array (``p.share(p.ndarray[1:])``): same storage."""
        view = StridedArray(ndarray)
        view._storage = self._storage or self.storage
        return view

    # ---- reading it

    def array(self) -> Array:
        """The zero-copy ndarray of the data. Raises BufferError when the host cannot see the memory."""
        return self.ndarray

    def to_host(self) -> Array:
        """The data as an ndarray: zero-copy when the host sees the memory, else a contiguous copy of it."""
        try:
            return self.ndarray
        except BufferError:
            pass
        return _copy_to_host(self)

    def fill_from(self, source: Any) -> None:
        """Overwrite the data with source, broadcast and cast. Does not bump the version."""
        try:
            self.ndarray[...] = source
        except BufferError:
            _overwrite(self, source)

    def copy_from(self, other: StridedArray) -> None:
        """Overwrite the data with that of another payload of the same shape and dtype, wherever both are: on one device
        without the host, where both lie in row-major order. Does not bump the version.
        """
        mine, theirs = self.storage, other.storage
        if not (self.contiguous and other.contiguous) or mine.device is not theirs.device:
            self.fill_from(other.to_host())
        elif self.nbytes:
            itemsize = self.dtype.itemsize
            offsets = self.offset * itemsize, other.offset * itemsize
            mine.device.copy(mine.buffer, theirs.buffer, self.nbytes, *offsets)

    @property
    def storage(self) -> Storage:
        """The storage, shared with all views."""
        if self._storage is None:
            with _materialising:
                if self._storage is None:
                    self._storage = Storage(None, _flat_bytes(self.ndarray)[0])
        return self._storage

    @property
    def version(self) -> int:
        """How often the storage was written in place."""
        return 0 if self._storage is None else self._storage.version

    def bump_version(self) -> None:
        """Say that the data was written in place."""
        self.storage.version += 1

    @property
    def host_owned(self) -> bool:
        """True when the data came as a host ndarray, so that its place is known without opening a device."""
        return self._storage is None or self._storage._owner is not None

    @property
    def device(self) -> Device:
        """The opened device that holds the data."""
        return host_device() if self._storage is None else self._storage.device

    def shares_storage(self, other: StridedArray) -> bool:
        """True when both are views of one storage."""
        return self is other or (self._storage is not None and self._storage is other._storage)

    def __repr__(self) -> str:
        layout = f"strides={list(self.strides)}, offset={self.offset}"
        return f"StridedArray(dtype={self.dtype.name}, shape={list(self.shape)}, {layout})"


def _learn(dtype: np.dtype[Any], shape: tuple[int, ...]) -> ArrayType:
    """The type of an array of a dtype and shape met for the first time. Raises TypeError when tensors have no such
    dtype."""
    if len(_array_types) >= _TYPES_KEPT:
        _array_types.clear()  # what was planned for the old ones is planned anew
    return _array_types.setdefault((dtype, shape), ArrayType(as_dtype(dtype), shape))


def _array_type(p: StridedArray) -> ArrayType:
    key = p.dtype.numpy, p.shape
    if not p.host_owned and not p.device.is_host:
        there = (*key, p.device)
        return _array_types.get(there) or _array_types.setdefault(there, ArrayType(p.dtype, p.shape, p.device))
    return _array_types.get(key) or _learn(*key)


def _is_shareable(a: Array) -> bool:
    """True when elements are aligned and whole elements apart; what owns its memory always is so."""
    flags, itemsize = a.flags, a.itemsize
    return flags.aligned and (flags.c_contiguous or all(stride % itemsize == 0 for stride in a.strides))


def _flat_bytes(a: Array) -> tuple[Array, int]:
    """The memory that a touches as a flat uint8 array, and the byte offset of a's first element in it."""
    if a.flags.c_contiguous:
        return a.reshape(-1).view(np.uint8), 0
    low, high = extent(a.shape, a.strides)  # in bytes of first bytes
    corner = a[tuple(slice(n - 1, n) if s < 0 else slice(0, 1) for n, s in zip(a.shape, a.strides, strict=True))]
    count = high - 1 - low + a.itemsize
    flat = np.lib.stride_tricks.as_strided(corner.reshape(1).view(np.uint8), (count,), (1,))
    return flat, -low


def _copy_to_device(payload: StridedArray, device: Device) -> StridedArray:
    """A contiguous copy on another device."""
    source = np.ascontiguousarray(payload.ndarray).reshape(payload.shape)
    there = StridedArray.empty(payload.shape, payload.dtype, device)
    if source.nbytes:
        device.copy(there.storage.buffer, source.reshape(-1).view(np.uint8))
        device.synchronize()  # the source may change or go away
    return there


def _span(p: StridedArray) -> tuple[Array, Array, int]:
    """Host memory as large as what p reaches on a device, p's elements in it, and p's first byte there."""
    low, high = extent(p.shape, p.strides)
    itemsize = p.dtype.itemsize
    span = np.empty((high - low) * itemsize, np.uint8)
    strides = [stride * itemsize for stride in p.strides]
    elements: Array = np.ndarray(p.shape, p.dtype.numpy, span, -low * itemsize, strides)
    return span, elements, (p.offset + low) * itemsize


def _copy_to_host(p: StridedArray) -> Array:
    """The elements of a payload that the host cannot see, copied over."""
    span, elements, start = _span(p)
    _fetch(p, span, start)
    return elements.copy()


def _fetch(p: StridedArray, span: Array, start: int) -> None:
    if span.nbytes:
        p.device.copy(span, p.storage.buffer, span.nbytes, 0, start)
        p.device.synchronize()


def _overwrite(p: StridedArray, source: Any) -> None:
    """Copy source's elements over the ones of a payload that the host cannot see."""
    if type(source) in (int, float) and not source and p.contiguous:
        p.device.memset(p.storage.buffer, 0, p.offset * p.dtype.itemsize, p.nbytes)
        return
    span, elements, start = _span(p)
    if not p.contiguous:
        _fetch(p, span, start)  # what lies between the elements must stay
    elements[...] = source
    if span.nbytes:
        p.device.copy(p.storage.buffer, span, span.nbytes, start)
        p.device.synchronize()  # span goes away


def _host_view(p: StridedArray) -> Array:
    storage, itemsize = p._storage, p.dtype.itemsize
    if p._memory is not None:
        return np.ndarray(p.shape, p.dtype.numpy, p._memory)
    if storage is None:
        raise AttributeError("ndarray")
    if 0 in p.shape or storage.nbytes == 0:
        return np.empty(p.shape, p.dtype.numpy)
    strides = [stride * itemsize for stride in p.strides]
    return np.ndarray(p.shape, p.dtype.numpy, storage.host_bytes(), p.offset * itemsize, strides)


def _offset(p: StridedArray) -> int:
    """Elements between the storage's start and the first element, for payloads that came as arrays."""
    if p.size == 0:
        return 0
    owner = p.storage._owner
    start = p.storage.device.address(p.storage.buffer) if owner is None else _address_of(owner)
    return (_address_of(p.ndarray) - start) // p.dtype.itemsize


def _address_of(a: Array) -> int:
    return int(a.__array_interface__["data"][0])  # twice as fast as a.ctypes.data


def _address(p: StridedArray) -> int:
    if p._storage is None or p._storage._owner is not None:
        return _address_of(p.ndarray)
    start: int = p.device.address(p.storage.buffer)
    return start + p.offset * p.dtype.itemsize


def _strides(p: StridedArray) -> tuple[int, ...]:
    a = p.ndarray
    if a.flags.c_contiguous:  # numpy's strides are arbitrary along axes of size 0 and 1
        return contiguous_strides(a.shape)
    itemsize = a.itemsize
    return tuple(stride // itemsize for stride in a.strides)


_DERIVE: dict[str, Callable[[StridedArray], Any]] = {
    "_memory": lambda p: None,
    "array_type": _array_type,
    "ndarray": _host_view,
    "ndim": lambda p: len(p.shape),
    "size": lambda p: prod(p.shape),
    "nbytes": lambda p: p.size * p.dtype.itemsize,
    "strides": _strides,
    "offset": _offset,
    "contiguous": lambda p: is_contiguous(p.shape, p.strides),
    "address": _address,
}
