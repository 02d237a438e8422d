"""Modules compiled in parts: they are linked into one library, whatever is in which part."""

import ctypes
import mmap
import sys
from contextlib import contextmanager

import pytest

from argosy_cinn.printers.llvm import Module
from argosy_cinn.printers.types import Value
from argosy_cinn.runtime.jit import CodegenError
from argosy_cinn.runtime.linking import link
from argosy_cinn.runtime.objects import archive, compile_objects, members
from argosy_cinn.target import Target


def chain(count):
    """A module whose function ``run`` adds a table's elements by as many functions that call each other."""
    module = Module(Target.host())
    table = module.constant_array("table", "i64", list(range(1, count + 1)))
    for i in range(count):
        with module.function(f"step{i}", [("ptr noalias", "to")], export=False) as b:
            (to,) = b.arguments
            b.store(b.add(b.load("i64", to), b.load("i64", b.gep(table, i, "i64"))), to)
            if i:
                b.call(f"step{i - 1}", "void", to)
    with module.function("run", [("ptr", "to"), ("ptr", "dims")]) as b:
        b.call(f"step{count - 1}", "void", b.arguments[0])
    return module


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_parts_call_each_other(parts):
    module = chain(5)
    texts = module.texts(parts)
    assert len(texts) == parts
    assert all(sum(f"@step{i}(" in line for text in texts for line in text.splitlines() if "define" in line) == 1
               for i in range(5))  # fmt: skip
    code = compile_objects(texts, module.target)
    assert len(members(code)) == parts
    total = ctypes.c_int64(100)
    library = link(code, module.exports)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(library.address("run"))(ctypes.addressof(total), None)
    assert total.value == 115


_APART = 4 << 30
_MAP_PRIVATE, _MAP_ANONYMOUS, _MAP_NORESERVE = 0x2, 0x20, 0x4000


@contextmanager
def holes_above_others():
    """A function that makes a hole of so many pages in an address space that is taken from there up; what does not fit
    comes to lie about `_APART` below it."""
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

    def reserve(size):
        return libc.mmap(None, size, 0, _MAP_PRIVATE | _MAP_ANONYMOUS | _MAP_NORESERVE, -1, 0)

    def make_hole(pages):
        """Below the last one and a page between them: what lies in that stays where it is."""
        nonlocal end
        taken.append((end - mmap.PAGESIZE, mmap.PAGESIZE))
        end -= (pages + 1) * mmap.PAGESIZE
        libc.munmap(end, pages * mmap.PAGESIZE)

    start, size, taken = reserve(_APART), 1 << 30, []
    end = start + _APART
    try:
        while size >= mmap.PAGESIZE:
            taken.append((reserve(size), size))
            if taken[-1][0] < start:
                libc.munmap(*taken.pop())
                size //= 2
        yield make_hole
    finally:
        for place, size in [(start, end - start), *taken]:
            libc.munmap(place, size)


@pytest.mark.skipif(sys.platform != "linux" or sys.maxsize < 1 << 32, reason="maps memory as Linux does")
def test_parts_that_lie_more_than_2_gib_apart_take_each_others_addresses():
    """Of two parts that differ in size one fits some hole where the other does not."""
    module = Module(Target.host())
    with module.function("far", [("i64", "x")], "i64", export=False, attributes="noinline") as b:
        (value,) = b.arguments
        for i in range(2000):
            value = b.binary("xor", b.binary("mul", value, value), i)
        b.ret(value)
    with module.function("address", [], "ptr") as b:
        b.ret(Value("ptr", "@far"))
    code, libraries, apart = compile_objects(module.texts(2), module.target), [], []
    with holes_above_others() as make_hole:
        for pages in range(1, 8):
            make_hole(pages)
            libraries.append(link(code, ["address"]))
            address = libraries[-1].address("address")
            apart.append(abs(ctypes.CFUNCTYPE(ctypes.c_void_p)(address)() - address))
    assert max(apart) > 1 << 31


def test_a_small_module_is_one_part():
    module = chain(1)
    assert module.texts(4) == [module.text()]


def test_a_damaged_archive_is_no_code():
    whole = archive([b"abc", b"defg"])
    assert members(whole) == [b"abc", b"defg"]
    with pytest.raises(CodegenError, match="damaged"):
        members(whole[:-4])
    with pytest.raises(CodegenError, match="damaged"):
        members(whole[:60] + b"??" + whole[62:])
