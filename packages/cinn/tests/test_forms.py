"""Forms say what kernels compute, and know no target, printer or emitter."""

import ast
from pathlib import Path

import pytest

import argosy_cinn
from argosy_cinn.forms.elementwise import OPERATIONS
from argosy_cinn.loops import elementwise

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
