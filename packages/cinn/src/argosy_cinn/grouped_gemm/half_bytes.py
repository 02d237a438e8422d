"""Numbers of four bits, two to a byte, as floats: integers by shifts, others (e2m1, say) by look-ups among sixteen."""

from __future__ import annotations

from argosy_cinn.contraction import Cells
from argosy_cinn.contraction.packing import convert_element
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import FLOAT, I32, Value, lanes_of, vector, vector_constant

#: What the bits of integers stand for.
INTEGERS = (*range(8), *range(-8, 0))
_SHIFT, _BITS = 4, 15


def numbers_of_bytes(numbers: tuple[int, ...], half: int) -> tuple[float, ...]:
    """What each byte stands for where its low half, or its high one, is one of sixteen ``numbers``."""
    return tuple(float(numbers[byte >> _SHIFT * half & _BITS]) for byte in range(256))


def read_half(b: Function, cells: Cells, numbers: tuple[int, ...], half: int) -> Value:
    """The numbers of the low or the high halves of bytes."""
    (value,) = cells.values
    wide = b.convert("sext", value, I32)
    if numbers != INTEGERS:
        return _look_up(b, numbers, b.binary("and", b.binary("lshr", wide, _SHIFT * half), _BITS))
    bits = wide if half else b.binary("shl", wide, 28)
    return convert_element(b, b.binary("ashr", bits, _SHIFT if half else 28), FLOAT, False)


def _look_up(b: Function, numbers: tuple[int, ...], index: Value) -> Value:
    """The ``numbers`` of places 0 to 15: by permutations of registers where there are such, else bit by bit."""
    lanes, target, floats = lanes_of(index.type), b.module.target, [float(x) for x in numbers]
    made = vector(FLOAT, lanes)
    if lanes == 16 and target.has("avx512f"):
        return b.call("llvm.x86.avx512.permvar.sf.512", made, vector_constant(FLOAT, floats), index)
    if lanes == 8 and target.has("avx2"):
        low, high = (
            b.call("llvm.x86.avx2.permps", made, vector_constant(FLOAT, floats[i : i + 8]), index) for i in (0, 8)
        )
        return b.select(b.icmp("ult", index, 8), low, high)
    found = [b.constant(made, x) for x in floats]
    for bit in range(_SHIFT):
        is_set = b.icmp("ne", b.binary("and", index, 1 << bit), 0)
        found = [b.select(is_set, odd, even) for even, odd in zip(found[::2], found[1::2], strict=True)]
    return found[0]
