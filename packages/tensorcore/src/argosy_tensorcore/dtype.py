"""Element types: one immutable ``DType`` per element type, known by its name alone.

Importing this module imports neither numpy nor ml_dtypes; ``DType.numpy`` fetches them when it is first read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

_LAYOUT: dict[str, tuple[str, int]] = {
    "bool": ("b", 1),
    "uint8": ("u", 1),
    "uint16": ("u", 2),
    "uint32": ("u", 4),
    "uint64": ("u", 8),
    "int8": ("i", 1),
    "int16": ("i", 2),
    "int32": ("i", 4),
    "int64": ("i", 8),
    "float8_e4m3fn": ("f", 1),
    "float8_e5m2": ("f", 1),
    "float16": ("f", 2),
    "bfloat16": ("f", 2),
    "float32": ("f", 4),
    "float64": ("f", 8),
    "complex64": ("c", 8),
    "complex128": ("c", 16),
}
_EXTENSION = frozenset({"bfloat16", "float8_e4m3fn", "float8_e5m2"})  # numpy types that ml_dtypes defines
_ALIASES = {"half": "float16", "float": "float32", "double": "float64", "int": "int32", "long": "int64"}
_ALIASES |= {"short": "int16", "cfloat": "complex64", "cdouble": "complex128"}


class DType:
    """An element type. There is one object per type, so ``is``, ``==`` and ``hash`` go by identity.

    name: the spelling that crosses package borders (``"float32"``); itemsize: bytes of one element; kind:
    ``'b'`` boolean, ``'i'`` signed, ``'u'`` unsigned, ``'f'`` floating (bfloat16 and float8 too), ``'c'``
    complex; numpy: the native ``np.dtype``, made on first use. As in Paddle a DType equals neither its name
    nor a ``np.dtype``.
    """

    __slots__ = ("itemsize", "kind", "name", "numpy")
    name: str
    itemsize: int
    kind: str
    numpy: np.dtype[Any]

    def __init__(self, name: str) -> None:
        self.name = name
        self.kind, self.itemsize = _LAYOUT[name]

    def __getattr__(self, attribute: str) -> object:
        if attribute != "numpy":  # the one slot that is filled on first use
            raise AttributeError(f"{self!r} has no attribute {attribute!r}")
        self.numpy = _numpy_dtype(self.name)
        return self.numpy

    @property
    def in_numpy(self) -> bool:
        """True when numpy itself has the type; bfloat16 and float8 come from ml_dtypes."""
        return self.name not in _EXTENSION

    @property
    def is_floating_point(self) -> bool:
        """True for every floating type, bfloat16 and float8 included."""
        return self.kind == "f"

    @property
    def is_complex(self) -> bool:
        """True for complex64 and complex128."""
        return self.kind == "c"

    def __repr__(self) -> str:
        return "paddle." + self.name

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return as_dtype, (self.name,)


def _numpy_dtype(name: str) -> np.dtype[Any]:
    import numpy as np

    if name in _EXTENSION:
        import ml_dtypes

        extension: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return extension
    return np.dtype(name)


bool_ = DType("bool")
uint8 = DType("uint8")
uint16 = DType("uint16")
uint32 = DType("uint32")
uint64 = DType("uint64")
int8 = DType("int8")
int16 = DType("int16")
int32 = DType("int32")
int64 = DType("int64")
float8_e4m3fn = DType("float8_e4m3fn")
float8_e5m2 = DType("float8_e5m2")
float16 = DType("float16")
bfloat16 = DType("bfloat16")
float32 = DType("float32")
float64 = DType("float64")
complex64 = DType("complex64")
complex128 = DType("complex128")

ALL_DTYPES = (
    bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64,
    float8_e4m3fn, float8_e5m2, float16, bfloat16, float32, float64, complex64, complex128,
)  # fmt: skip

# Everything ever seen to name a dtype -> its DType; as_dtype adds np.dtype objects and types when it meets
# them.
_known: dict[object, DType] = {}
for _dtype in ALL_DTYPES:
    _known |= {_dtype: _dtype, _dtype.name: _dtype, "paddle." + _dtype.name: _dtype}
for _dtype in ALL_DTYPES:  # ``DType.FLOAT32``, as Paddle's class of dtypes lists them
    setattr(DType, _dtype.name.upper(), _dtype)
_known |= {alias: _known[name] for alias, name in _ALIASES.items()}
_known |= {bool: bool_, int: int64, float: float64, complex: complex128}  # as numpy reads Python's types

_default = float32
_default_here: Callable[[], DType | None] | None = None
default_listeners: list[Callable[[], None]] = []
"""Called when the default dtype has changed: by those who remember what it led to."""


def as_dtype(x: object) -> DType:
    """The DType that x names: a DType, a name, a ``np.dtype``, a numpy scalar type or a Python type.

    Byte order is ignored (``'>f4'`` names float32). Raises TypeError for anything else.
    """
    try:
        return _known[x]
    except (KeyError, TypeError):
        return _learn(x)


def _learn(x: object) -> DType:
    import numpy as np

    found = None
    if x is not None:  # which numpy reads as float64
        try:
            given = np.dtype(x)  # type: ignore[call-overload]
        except TypeError:
            pass
        else:  # numpy forgets the name of its bool where someone has set np.bool = bool, as scripts of old do
            found = bool_ if given.kind == "b" else _known.get(given.name)
    if found is None:
        names = ", ".join(d.name for d in ALL_DTYPES)
        raise TypeError(f"{x!r} is not a data type of tensors; expected one of {names}")
    if not isinstance(x, np.ndarray):  # hashable by now; remember it
        _known[x] = found
    return found


def default_dtype() -> DType:
    """The floating type of Python floats that become tensors; float32 until ``set_default_dtype``."""
    return _default if _default_here is None else _default_here() or _default


def override_default_dtype(find: Callable[[], DType | None]) -> None:
    """Have ``find()`` asked for the default dtype first, which returns None where the process's is the default."""
    global _default_here
    _default_here = find


def as_default_dtype(x: object) -> DType:
    """The DType that x names, which may be the default. Raises TypeError for any but four floating types."""
    dtype = as_dtype(x)
    if dtype.kind != "f" or dtype.itemsize == 1:
        raise TypeError(f"the default dtype must be float16, bfloat16, float32 or float64, not {dtype!r}")
    return dtype


def set_default_dtype(x: object) -> None:
    """Make x (float16, bfloat16, float32 or float64, in any spelling) the type that Python floats become."""
    global _default
    dtype = as_default_dtype(x)
    if dtype is not _default:
        _default = dtype
        for listener in default_listeners:
            listener()


class finfo:
    """Limits of a floating or complex type: bits, eps, min, max, tiny, smallest_normal, resolution."""

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")
    eps: float
    max: float
    min: float
    resolution: float
    smallest_normal: float

    def __init__(self, dtype: object = None, *, type: object = None) -> None:
        wanted = as_dtype(type if dtype is None else dtype)
        if wanted.kind not in "fc":
            raise TypeError(f"finfo takes a floating or complex dtype, not {wanted!r}; see iinfo")
        import ml_dtypes

        info: Any = ml_dtypes.finfo(wanted.numpy)  # type: ignore[no-untyped-call]
        self.dtype, self.bits = as_dtype(info.dtype).name, int(info.bits)
        for name in ("eps", "max", "min", "resolution", "smallest_normal"):
            setattr(self, name, float(getattr(info, name)))
        self.tiny: float = self.smallest_normal

    def __repr__(self) -> str:
        limits = "min max eps resolution smallest_normal tiny".split()
        shown = ", ".join(f"{name}={getattr(self, name):g}" for name in limits)
        return f"paddle.finfo({shown}, bits={self.bits}, dtype={self.dtype})"


class iinfo:
    """Limits of an integer type: bits, min, max (Python integers)."""

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, dtype: object) -> None:
        wanted = as_dtype(dtype)
        if wanted.kind not in "iu":
            raise TypeError(f"iinfo takes an integer dtype, not {wanted!r}; see finfo")
        self.dtype, self.bits = wanted.name, 8 * wanted.itemsize
        signed = wanted.kind == "i"
        self.min = -(1 << (self.bits - 1)) if signed else 0
        self.max = (1 << (self.bits - signed)) - 1

    def __repr__(self) -> str:
        return f"paddle.iinfo(min={self.min}, max={self.max}, bits={self.bits}, dtype={self.dtype})"
