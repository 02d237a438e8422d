"""Compiling, caching, calling and running in parallel."""

import ctypes
import gc
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

from argosy_cinn.printers.llvm import Module
from argosy_cinn.printers.types import I64, PTR
from argosy_cinn.runtime import CodegenError, ObjectCache, entry, load, parallel_for, scratch, set_threads
from argosy_cinn.runtime.jit import compile_object
from argosy_cinn.runtime.linking import PER_LINKER, linker
from argosy_cinn.runtime.loading import link_program
from argosy_cinn.runtime.workers import workers
from argosy_cinn.target import Target


def adder(amount=1):
    """A module whose run(addresses, dims) adds ``amount`` to dims[0] words at addresses[0], one
    chunk a word.
    """
    module = Module(Target.host())
    with module.function("kernel", [("ptr", "argument"), ("i64", "chunk")], export=False) as b:
        argument, chunk = b.arguments
        place = b.gep(b.load(PTR, argument), chunk, I64)
        own = scratch(b, 4096)
        b.store(b.add(b.load(I64, place), amount), own)
        b.store(b.load(I64, own), place)
    with module.function("run", [("ptr", "addresses"), ("ptr", "dims")]) as b:
        parallel_for(b, "kernel", b.arguments[0], b.load(I64, b.arguments[1]))
    return module


class Words:
    """Words that the program works on, with the two tables it takes."""

    def __init__(self, count):
        self.data = np.zeros(count, np.int64)
        self.table = np.array([self.data.ctypes.data], np.int64)
        self.dims = np.array([count], np.int64)
        self.arguments = (self.table.ctypes.data, self.dims.ctypes.data)


@pytest.fixture
def _one_thread_afterwards():
    yield
    set_threads(1)


@pytest.mark.usefixtures("_one_thread_afterwards")
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_every_chunk_runs_exactly_once(threads):
    """Whatever the number of threads, each chunk of each region runs once, and a region is over when
    it returns.
    """
    module = adder()
    call = entry(load(module.text(), module.exports))
    set_threads(threads)
    words = Words(1000)
    for _ in range(100):
        call(*words.arguments)
    assert (words.data == 100).all()


@pytest.mark.usefixtures("_one_thread_afterwards")
def test_regions_of_several_python_threads_do_not_mix():
    """A thread that finds the workers busy runs its own region inline."""
    module = adder()
    call = entry(load(module.text(), module.exports))
    set_threads(2)
    mine = [Words(300) for _ in range(4)]

    def work(words):
        for _ in range(200):
            call(*words.arguments)

    threads = [threading.Thread(target=work, args=(words,)) for words in mine]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((words.data == 200).all() for words in mine)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_computes():
    """After fork a child runs regions, with workers of its own."""
    code = """if True:
        import os, sys
        sys.path.insert(0, {folder!r})
        from test_jit import Words, adder, entry, load, set_threads
        module = adder()
        call = entry(load(module.text(), module.exports))
        set_threads(2)
        words = Words(100)
        call(*words.arguments)
        child = os.fork()
        if child == 0:
            call(*words.arguments)
            os._exit(0 if (words.data == 2).all() else 3)
        assert os.waitpid(child, 0)[1] == 0
    """
    code = code.format(folder=os.path.dirname(__file__))
    subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", code], check=True)


@pytest.mark.parametrize("release_gil", [True, False])
def test_an_entry_refuses_what_is_no_address(release_gil):
    """Wrong arguments raise TypeError instead of reaching native code."""
    module = adder()
    call = entry(load(module.text(), module.exports), release_gil=release_gil)
    for bad in ((), (1,), (1, 2, 3), ("a", 0), (0, 2.5)):
        with pytest.raises((TypeError, ctypes.ArgumentError)):
            call(*bad)


def test_an_entry_keeps_its_library():
    """Machine code stays mapped as long as something can call it."""
    module = adder()
    call = entry(load(module.text(), module.exports))
    words = Words(5)
    call(*words.arguments)
    assert (words.data == 1).all()


def test_text_that_llvm_refuses_is_an_error():
    """A generator's fault comes back as CodegenError with the text, never as an abort."""
    with pytest.raises(CodegenError, match="LLVM refused") as caught:
        load("define void @f() { ret i32 0 }", ["f"])
    assert "ret i32" in caught.value.text


def test_a_function_that_exists_nowhere_is_an_error(capfd):
    """Linking against a missing symbol raises, and the next module links as before."""
    module = Module(Target.host())
    with module.function("run", [("ptr", "addresses"), ("ptr", "dims")]) as b:
        b.call("argosy_no_such_function", "void")
    with pytest.raises(CodegenError, match="cannot be linked"):
        load(module.text(), module.exports)
    capfd.readouterr()  # LLVM reports on stderr as well
    module = adder()
    assert load(module.text(), module.exports).address("run")


def test_an_unknown_export_is_named():
    """Asking for a function that is not exported says which are."""
    module = adder()
    with pytest.raises(LookupError, match="exports run, not 'walk'"):
        load(module.text(), module.exports).address("walk")


def test_the_second_load_comes_from_the_cache(tmp_path):
    """Equal text for an equal machine compiles once."""
    cache = ObjectCache(tmp_path / "objects")
    module = adder()
    assert not load(module.text(), module.exports, cache=cache).cache_hit
    assert load(module.text(), module.exports, cache=cache).cache_hit
    assert not load(adder(2).text(), module.exports, cache=cache).cache_hit
    assert not load(module.text(), module.exports, Target.host(), passes=1, cache=cache).cache_hit
    assert workers().threads >= 1


def test_nothing_is_left_of_libraries_that_are_gone():
    """A linker keeps notes of all libraries that it ever linked, so that it has to go with them; the one that a living
    library came from stays."""
    text, exports = adder().text(), ("run",)
    code = compile_object(text, Target.host())
    kept, linkers = link_program(code, exports), set()
    first = weakref.ref(linker.current)
    for _ in range(2 * PER_LINKER):
        link_program(code, exports)
        linkers.add(weakref.ref(linker.current))
    gc.collect()
    assert first() is None
    assert [each() for each in linkers if each() is not None] == [linker.current]
    words = Words(3)
    entry(kept)(*words.arguments)
    assert list(words.data) == [1, 1, 1]
