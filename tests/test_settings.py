"""Each variable of the environment is declared once, read in one place, printed, and part of a key where it says so."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys

import pytest
from workspace import ROOT

from argosy import settings as of_the_framework
from argosy_cinn import settings as of_the_compiler
from argosy_cinn.store.program_cache import program_key
from argosy_cinn.target import Target
from argosy_phi_ops import settings
from argosy_phi_ops.settings import MEMORY, NUMBER, SWITCH, TEXT, Setting
from argosy_pir import Program

READER = ROOT / "packages/phi-ops/src/argosy_phi_ops/settings.py"
SOURCES = [path for path in sorted(ROOT.glob("packages/*/src/**/*.py")) if path != READER]
OTHERS = {
    "ARGOSY_BATCH_INVARIANT": "1", "ARGOSY_CODEGEN_LEVEL": "0",
    "ARGOSY_CACHE_DIR": "elsewhere", "ARGOSY_CHECK_INDEX": "0", "ARGOSY_FUEL": "3", "ARGOSY_GUARD": "behind",
    "ARGOSY_KERNEL_FORM": "spirv", "ARGOSY_MEMORY_BUDGET": "1MiB", "ARGOSY_TUNE": "1", "ARGOSY_WINOGRAD": "0",
}  # fmt: skip


def _reads_environment(text: str) -> list[int]:
    """The lines that name the environment."""
    if not re.search("environ|getenv|expandvars", text):
        return []
    names = {"environ", "environb", "getenv", "getenvb"}
    return [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if (isinstance(node, ast.Attribute) and node.attr in names)
        or (isinstance(node, ast.ImportFrom) and names.intersection(alias.name for alias in node.names))
        or (isinstance(node, ast.Call) and ast.unparse(node.func).endswith("expandvars"))
    ]


def test_the_environment_is_read_in_one_module() -> None:
    """Low packages take arguments; the others declare settings."""
    found = {str(path.relative_to(ROOT)): _reads_environment(path.read_text("utf-8")) for path in SOURCES}
    assert {path: lines for path, lines in found.items() if lines} == {}
    assert _reads_environment(READER.read_text("utf-8"))
    for text in ("import os\nos.getenv('A')", "from os import environ", "os.path.expandvars('$A')", "os.environb"):
        assert _reads_environment(text)


def test_variables_that_sources_name_are_declared() -> None:
    """Nobody reads about a variable that nothing reads."""
    named = {name for path in SOURCES for name in re.findall(r"ARGOSY_[A-Z_]+[A-Z]", path.read_text("utf-8"))}
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("packages/*/README.md")]
    named |= {name for path in pages for name in re.findall(r"ARGOSY_[A-Z_]+[A-Z]", path.read_text("utf-8"))}
    assert named <= {setting.name for setting in settings.declared_settings()}


def test_info_prints_all_of_them() -> None:
    """Each with its value, where it comes from, and its meaning."""
    command = [sys.executable, "-m", "argosy", "info"]
    environment = os.environ | {"ARGOSY_TUNE": "1"}
    text = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    for setting in settings.declared_settings():
        assert re.search(rf"^{setting.name} +\S+ \((default|environment)\) {re.escape(setting.doc)}", text, re.M)
    assert re.search(r"^ARGOSY_TUNE +True \(environment\)", text, re.M)


@pytest.mark.parametrize("name", OTHERS)
def test_what_changes_code_is_part_of_the_key(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing else is."""
    setting = next(setting for setting in settings.declared_settings() if setting.name == name)
    program, target = Program("f"), Target.host()
    monkeypatch.delenv(name, raising=False)
    before = program_key(program, target, {})
    monkeypatch.setenv(name, OTHERS[name])
    assert (program_key(program, target, {}) != before) == setting.changes_code
    if setting.changes_code:
        monkeypatch.delenv(name)
        assert program_key(program, target, {setting.option: setting.kind.parse(OTHERS[name])}) != before


def test_every_setting_that_changes_code_is_tried_above() -> None:
    """So that a new one is, too."""
    assert {setting.name for setting in settings.declared_settings() if setting.changes_code} <= set(OTHERS)
    assert {of_the_compiler.CACHE_DIR.name, of_the_framework.LOG.name} <= {s.name for s in settings.declared_settings()}


def test_values_come_from_text_of_their_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty variable is none; what has no value is refused by name."""
    monkeypatch.setattr(settings, "_declared", dict(settings._declared))
    for kind, text, value, wrong in (
        (SWITCH, "0", False, "yes"),
        (NUMBER, "12", 12, "-1"),
        (settings.COUNT, "2", 2, "0"),
        (MEMORY, "1.5GiB", 3 << 29, "1 gigabyte"),
        (settings.one_of("plain"), "plain", "plain", "plane"),
    ):
        setting = Setting(f"ARGOSY_TRIED_{len(settings._declared)}", kind, "the default", "tried here")
        for unset in (None, ""):
            setting.write(unset)
            assert setting.read() == "the default"
            assert not setting.is_set
        setting.write(text)
        assert setting.is_set
        assert setting.read() == value == settings.VALUES[setting.name]
        setting.write(wrong)
        with pytest.raises(
            ValueError, match=rf"{re.escape(setting.name)} is '{wrong}': expected {re.escape(kind.expected)}"
        ):
            setting.read()
        assert setting.resolve({setting.option: value}) == value
        with pytest.raises(ValueError, match=rf"option {re.escape(setting.option)} is 2.5: expected"):
            setting.resolve({setting.option: 2.5})
        setting.write(None)
    with pytest.raises(ValueError, match="ARGOSY_EAGER is declared twice"):
        Setting("ARGOSY_EAGER", TEXT, "", "again")
