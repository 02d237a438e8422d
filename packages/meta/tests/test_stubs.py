"""The committed stubs tell tools what the faces give."""

import ast
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType, NoneType

import pytest

from argosy.stubs import FACES


def _stub_names(face):
    tree = ast.parse(Path(face.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            yield from (alias.asname for alias in node.names if alias.asname and alias.asname[0] != "_")
        elif isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign):
            yield node.target.id
        elif isinstance(node, ast.Assign):
            yield node.targets[0].id


@pytest.mark.parametrize("module", FACES)
def test_stubs_list_the_table_and_nothing_that_is_not_there(module):
    """Every name of a face's table is in its stub, and every name of the stub can be fetched."""
    face = import_module(module)
    names = set(_stub_names(face))
    assert {name for name in getattr(face, "_TABLE", {}) if name[0] != "_"} <= names
    missing = [name for name in names if not hasattr(face, name)]
    assert not missing, f"python -m argosy.stubs writes the stubs anew; they name {missing}"


@pytest.mark.parametrize("module", FACES)
def test_no_submodule_takes_the_place_of_another_name(module):
    """Importing a submodule binds its name in the package: that name must be the face's for this very submodule, or
    the package has imported both already."""
    face = import_module(module)
    folder = Path(face.__file__).parent if hasattr(face, "__path__") else None
    submodules = {path.stem for path in folder.iterdir()} if folder is not None else set()
    table = getattr(face, "_TABLE", {})
    for name in submodules & set(table):
        own = f"{module}.{name}"
        assert table[name] == own or (own in sys.modules and type(vars(face).get(name)) not in (ModuleType, NoneType))


@pytest.mark.parametrize("module", FACES)
def test_no_name_is_imported_twice(module):
    """Type checkers take the first import of a name: one for the stub's own use would hide what users import."""
    tree = ast.parse(Path(import_module(module).__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imported = [a.asname or a.name for node in tree.body if isinstance(node, ast.ImportFrom) for a in node.names]
    assert len(imported) == len(set(imported))
