"""The committed stubs tell tools what the table of names gives."""

import ast
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType, NoneType

import pytest

import argosy
from argosy.api import targets
from argosy.api.addresses import ADDRESSES
from argosy.api.names import NAMES
from argosy.api.stubs import MODULES, path

ROOT = Path(argosy.__file__).parent


_OWN = {"_Any", "_NoReturn", "_bool", "_complex", "_float", "_int", "_str"}  # the stubs' own


def _tree(module):
    return ast.parse(path(module).read_text(encoding="utf-8"))


def _stub_names(module):
    for node in _tree(module).body:
        if isinstance(node, ast.ImportFrom):
            yield from (
                alias.asname
                for alias in node.names
                if alias.asname and alias.asname not in _OWN and alias.asname[:5] != "_own_"
            )
        elif isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign):
            yield node.target.id
        elif isinstance(node, ast.Assign):
            yield node.targets[0].id


@pytest.mark.parametrize("module", MODULES)
def test_stubs_list_the_table_and_nothing_that_is_not_there(module):
    """Every name of a module's rows is in its stub, and every name of the stub can be fetched."""
    found = import_module(module)
    names = set(_stub_names(module))
    assert {name for name in targets(module) if name[0] != "_" or module in ADDRESSES} <= names
    missing = [name for name in names if not hasattr(found, name)]
    assert not missing, f"python -m argosy.api.stubs writes the stubs anew; they name {missing}"


@pytest.mark.parametrize("module", sorted(NAMES))
def test_no_submodule_takes_the_place_of_another_name(module):
    """Importing a submodule binds its name in the package: that name must be the table's for this very submodule, or
    the package has imported both already."""
    found = import_module(module)
    folder = Path(found.__file__).parent if hasattr(found, "__path__") else None
    inner = {name.rpartition(".")[2] for name in ADDRESSES if name.rpartition(".")[0] == module}
    submodules = inner | ({each.stem for each in folder.iterdir()} if folder is not None else set())
    table = targets(module)
    for name in submodules & set(table):
        own = f"{module}.{name}"
        assert table[name] == own or (own in sys.modules and type(vars(found).get(name)) not in (ModuleType, NoneType))


@pytest.mark.parametrize("module", MODULES)
def test_no_name_is_imported_twice(module):
    """Type checkers take the first import of a name: one for the stub's own use would hide what users import."""
    imported = [
        a.asname or a.name for node in _tree(module).body if isinstance(node, ast.ImportFrom) for a in node.names
    ]
    assert len(imported) == len(set(imported))


def test_addresses_have_no_file_and_packages_have_one():
    for module, is_file in (*((m, True) for m in NAMES), *((m, False) for m in ADDRESSES)):
        place = ROOT.joinpath(*module.split(".")[1:])
        assert (place.with_suffix(".py").exists() or (place / "__init__.py").exists()) is is_file, module


def test_no_stub_is_left_of_a_module_that_has_gone():
    """Every generated stub is one that would be written today."""
    assert {*ROOT.rglob("*.pyi")} == {path(module) for module in MODULES}
