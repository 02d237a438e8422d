"""Forms say what kernels compute, and know no target, printer or emitter."""

import ast
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import argosy_cinn
from argosy_cinn import kinds
from argosy_cinn.assembly.building import assemble_program
from argosy_cinn.emitter import Emitter
from argosy_cinn.forms.elementwise import OPERATIONS
from argosy_cinn.forms.form import Form
from argosy_cinn.fuel import Budget
from argosy_cinn.loops import elementwise
from argosy_cinn.loops.nest import PARAMETERS, Pointers
from argosy_cinn.pipeline import lower_program
from argosy_cinn.runtime import entry, load
from argosy_cinn.target import Target
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir import Builder, Program, TensorType
from argosy_pir.core import Operation

FORMS = sorted((Path(argosy_cinn.__path__[0]) / "forms").glob("*.py"))
#: What a form may import of this package: what sizes are, and other forms.
ALLOWED = ("argosy_cinn.forms", "argosy_cinn.shapes")


def imported(path):
    """Modules of this package that a file imports, within functions and for type checkers, too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        yield from (name for name in names if name.startswith("argosy_cinn"))


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_imports_no_target_printer_or_emitter(path):
    assert [name for name in imported(path) if not name.startswith(ALLOWED)] == []


def test_every_elementwise_primitive_of_a_form_has_code():
    assert elementwise.OPERATIONS.keys() == OPERATIONS


# -- a kind of kernel that only this file knows


@dataclass(slots=True)
class ReversalForm(Form):
    """A vector backwards."""

    kind = "reversal"
    source: object
    target: object

    def key(self, slots):
        slots.update({self.source: 0, self.target: 1})
        return f"reversal of {self.source.shape}"

    def name(self):
        return "reversal"

    def summary(self):
        return f"{self.source.shape[0]} elements backwards"

    def reads(self):
        return {self.source}


def lower_reversal(op):
    return ReversalForm(op.operand(0), op.result)


def emit_reversal(module, name, form, slots):
    with module.function(name, PARAMETERS, export=False) as b:
        pointers, n = Pointers(b, b.arguments[0], slots), form.source.shape[0]
        with b.loop(0, n) as loop:
            value = b.load("float", b.gep(pointers(form.source), loop.index, "float"))
            b.store(value, b.gep(pointers(form.target), b.sub(n - 1, loop.index), "float"))


REVERSAL = Emitter(emit_reversal, lambda form, target: 1)


def test_a_kind_of_kernel_is_a_form_a_lowering_an_emitter_and_a_line(monkeypatch):
    line = kinds.Kind({"chunks": f"{__name__}:REVERSAL"}, "toy.reverse", f"{__name__}:lower_reversal")
    monkeypatch.setitem(kinds.KINDS, "reversal", line)
    monkeypatch.setitem(kinds.KIND_OF_OPERATION, "toy.reverse", "reversal")
    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or SimpleNamespace(**globals()))
    program = Program("backwards")
    x = program.add_input(TensorType((5,), "float32"))
    with emit_at(Builder.at_end(program.block)):
        doubled = prim.add(x, x)
        back = program.block.append(Operation("toy.reverse", (doubled,), (doubled.type,))).result
        out = prim.add(back, 1.0)
    program.set_outputs([out])
    plan, assembly = assemble_program(lower_program(program, Target.host()), Target.host(), Budget())
    assert [form.kind for step in plan.steps for form in step.forms] == ["nest", "reversal", "nest"]
    call = entry(load(assembly.module.text(), assembly.module.exports), "segment0")
    given, got = np.arange(5, dtype=np.float32), np.empty(5, np.float32)
    table = np.array([a.ctypes.data for a in (np.empty(plan.arena_bytes + 64, np.uint8), given, got)])
    call(table.ctypes.data, 0)
    np.testing.assert_array_equal(got, 2 * given[::-1] + 1)
