"""Programs whose passes need not run: found by the hash of what they were before."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from argosy_cinn import CinnCompiler, explain
from argosy_cinn.runtime import ObjectCache
from argosy_cinn.store.preparation import PreparedProgram, is_lasting
from argosy_hwadapt import device
from argosy_phi_ops.passes.decompose import Decompose
from argosy_pir import Builder, Program, TensorType
from argosy_tensorcore.storage import StridedArray

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


class Counted:
    """The pass `decompose` as a preparation that counts its runs."""

    def __init__(self, recipe="decompose"):
        self.recipe, self.runs = recipe, 0

    def run(self, program):
        self.runs += 1
        Decompose().run(program)


def captured(name="captured", operator="tanh", last=None):
    """``tanh(x)`` of the operators' dialect, with a state that it is added to."""
    program = Program(name)
    x = program.add_input(TensorType((3, 4), "float32"))
    state = program.add_state("total", TensorType((3, 4), "float32")).argument
    builder = Builder.at_end(program.block)
    y = builder.create(f"phi.{operator}", (x,), {}, (x.type,)).result
    grown = builder.create("phi.add", (state, y), {}, (x.type,)).result
    program.set_outputs([y], [grown if last is None else last])
    return program


def compiled(cache, preparation, program=None):
    return CinnCompiler().compile_prepared(program or captured(), preparation, device("cpu"), (), {"cache": cache})


def result(executable, x=X):
    state = StridedArray(np.zeros_like(x))
    (made,) = executable.run([StridedArray(x.copy())], [state])
    np.testing.assert_array_equal(made.array(), state.array())
    return made.array()


@pytest.fixture
def cache(tmp_path):
    return ObjectCache(tmp_path / "objects")


def test_the_second_time_the_passes_run_only_when_somebody_looks(cache):
    first, second = Counted(), Counted()
    expected = result(compiled(cache, first))
    np.testing.assert_allclose(expected, np.tanh(X), rtol=1e-6)
    executable = compiled(cache, second, captured("renamed"))
    assert executable.report()["cache_hit"]
    np.testing.assert_array_equal(result(executable), expected)
    assert (first.runs, second.runs) == (1, 0)
    assert "prim.tanh" in str(executable.program)
    assert "phi." not in str(executable.primitive_program)
    assert "kernel" in explain(executable)
    assert second.runs == 1


def test_other_programs_and_recipes_are_other_entries(cache):
    compiled(cache, Counted())
    for program, recipe in ((captured(operator="sin"), "decompose"), (captured(), "other")):
        preparation = Counted(recipe)
        compiled(cache, preparation, program)
        assert preparation.runs == 1


def test_a_lost_or_damaged_entry_is_made_again(cache):
    compiled(cache, Counted())
    large = max(cache.folder.glob("*.obj"), key=lambda path: path.stat().st_size)
    large.write_bytes(large.read_bytes()[:-9])
    again = Counted()
    np.testing.assert_allclose(result(compiled(cache, again)), np.tanh(X), rtol=1e-6)
    assert again.runs == 1
    later = Counted()
    compiled(cache, later)
    assert later.runs == 0


def test_an_entry_that_is_no_code_is_told_once_and_made_again(cache):
    compiled(cache, Counted())
    large = max(cache.folder.glob("*.obj"), key=lambda path: path.stat().st_size)
    content = cache.get(large.stem)
    cache.put(large.stem, content[: 8 + int.from_bytes(content[:8], "little")] + b"no object")
    with pytest.warns(RuntimeWarning, match="cached code does not load, and is made again"):
        made = compiled(cache, Counted())
    np.testing.assert_allclose(result(made), np.tanh(X), rtol=1e-6)
    later = Counted()
    assert compiled(cache, later).report()["cache_hit"]
    assert later.runs == 0


def test_what_users_code_expands_is_not_noted():
    program = captured()
    assert is_lasting(program)
    x, attributes = program.inputs[0], {"function": "users", "arguments": {}}
    Builder.at_start(program.block).create("prim.host_call", (x,), attributes, (x.type,), inferred=True)
    assert not is_lasting(program)


def test_unknown_options_and_devices_are_refused_before_anything_is_found(cache):
    with pytest.raises(ValueError, match="unknown options"):
        CinnCompiler().compile_prepared(captured(), Counted(), device("cpu"), (), {"cache": cache, "colour": 1})


FOUND = """
import sys
sys.path.insert(0, {tests!r})
from argosy_cinn.runtime import ObjectCache
from test_preparation import Counted, compiled, result
executable = compiled(ObjectCache({folder!r}), Counted())
result(executable)
assert executable.report()["cache_hit"]
making = ("argosy_cinn.assembly.building", "argosy_cinn.assembly.assemble")
loaded = [name for name in sys.modules if name.startswith(making)]
assert not loaded, loaded
assert "tanh" in executable.describe()
"""


def test_what_makes_code_is_not_loaded_where_programs_are_found(cache):
    compiled(cache, Counted())
    script = FOUND.format(tests=str(Path(__file__).parent), folder=str(cache.folder))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX processes")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_has_no_program_that_is_half_prepared():
    """A process forks when nothing is being prepared, and its child prepares what is left."""
    begun = threading.Event()

    class Slow(Counted):
        def run(self, program):
            begun.set()
            time.sleep(0.05)  # the fork begins meanwhile
            super().run(program)

    slow = Slow()
    prepared = [PreparedProgram(captured(), preparation) for preparation in (slow, Counted())]
    thread = threading.Thread(target=prepared[0])
    thread.start()
    begun.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(600)  # a child that waits for ever is killed by it
        whole = slow.runs == 1 and all(op.dialect != "phi" for made in prepared for op in made().walk())
        os._exit(0 if whole else 1)
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
