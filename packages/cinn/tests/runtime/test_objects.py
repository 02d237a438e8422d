"""Modules compiled in parts: they are linked into one library, whatever is in which part."""

import ctypes

import pytest

from argosy_cinn.printers.llvm import Module
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
