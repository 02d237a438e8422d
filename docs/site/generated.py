"""Pages that are written from the code: the reference, the IR, settings, commands, and the gallery."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import reference
from record_gallery import FOLDER, RUNS, command, scripts
from staging import ROOT

COMMANDS = {
    "argosy": ["argosy.cli", "--help"],
    "argosy run-check": ["argosy.cli", "run-check", "--help"],
    "argosy info": ["argosy.cli", "info", "--help"],
    "argosy devices": ["argosy.cli", "devices", "--help"],
    "argosy launch": ["argosy.cli", "launch", "--help"],
    "argosy bisect": ["argosy.cli", "bisect", "--help"],
    "argosy explain": ["argosy.cli", "explain", "--help"],
    "python -m argosy_pir": ["argosy_pir", "--help"],
    "python -m argosy_pir opt": ["argosy_pir", "opt", "--help"],
    "python -m argosy_pir reduce": ["argosy_pir", "reduce", "--help"],
    "python -m argosy_hwadapt.testing": ["argosy_hwadapt.testing", "--help"],
}


def write(source: Path) -> None:
    """Write all of them."""
    folder = source / "reference"
    folder.mkdir(parents=True, exist_ok=True)
    pages = reference.write(folder)
    (folder / "settings.md").write_text(settings(), encoding="utf-8")
    (folder / "commands.md").write_text(commands(), encoding="utf-8")
    for name, text in dialects().items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    _append(source / "reference.md", [f"reference/{name}" for name in pages])
    gallery(source)


def _append(page: Path, names: list[str]) -> None:
    """A table of contents below a page."""
    lines = "\n".join(names)
    text = page.read_text(encoding="utf-8") + f"\n```{{toctree}}\n:hidden:\n:maxdepth: 1\n\n{lines}\n```\n"
    page.write_text(text, encoding="utf-8")


def settings() -> str:
    """Every variable of the environment, as the packages declare them."""
    import argosy_cinn.settings  # noqa: F401
    from argosy_phi_ops.settings import declared_settings

    head = (
        "# Settings\n\nVariables of the environment that argosy reads. Each is declared once in the code, from which "
        "this page is written. An empty\nvariable is an unset one. `argosy info` prints the values that are in force. "
        "One that *changes code* is part of the key of what was\ncompiled: "
        "programs are compiled anew under another value.\n\n"
        "| variable | means | takes | default | changes code |\n|---|---|---|---|---|\n"
    )
    rows = [
        f"| `{s.name}` | {s.doc} | {s.kind.expected} | {'' if s.default in ('', None) else f'`{s.default}`'} "
        f"| {'yes' if s.changes_code else 'no'} |"
        for s in declared_settings()
    ]
    return head + "\n".join(rows) + "\n"


def commands() -> str:
    """What each command says of itself."""
    parts = ["# Commands\n\nWhat each command prints when it is called with `--help`.\n"]
    for name, words in COMMANDS.items():
        done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{name} --help ended with {done.returncode}: {done.stderr}")
        parts.append(f"## {name}\n\n```text\n{done.stdout.rstrip()}\n```\n")
    return "\n".join(parts)


def dialects() -> dict[str, str]:
    """A page for each dialect of the IR; that of the primitives says which rules each has."""
    import ir

    return ir.pages()


def gallery(source: Path) -> None:
    """A page for each example, and the thumbnails."""
    runs: dict[str, Any] = json.loads(RUNS.read_text(encoding="utf-8"))
    folder = source / "gallery"
    folder.mkdir(exist_ok=True)
    cards = []
    for name, run in runs.items():
        title, text = _docstring(ROOT / run["script"])
        code = (ROOT / run["script"]).read_text(encoding="utf-8")
        words = " ".join(command(run["script"], "plots" if "quickstart" not in run["script"] else "out/quickstart"))
        printed = "\n".join(run["printed"])
        where = f"{run['cores']} cores ({run['machine']})"
        if "processor_seconds" in run:
            seconds = f"{run['processor_seconds']:.0f} seconds of processor time on {where}"
        else:
            seconds = f"{run['seconds']:.0f} seconds on {where} beside other work"
        (folder / f"{name}.md").write_text(
            f"# {title}\n\n{text}\n\n![{title}](../images/{name}.png)\n\n```text\n{words}\n```\n\n"
            f"This run took {seconds}. It printed:\n\n```text\n{printed}\n```\n\n"
            f"## {run['script']}\n\n```python\n{code}```\n",
            encoding="utf-8",
        )
        image = f'<img src="_static/{name}-small.png" alt="{title}" loading="lazy">'
        cards.append(f'<a class="card" href="gallery/{name}.html">{image}<span>{title}</span></a>')
    page = source / "gallery.md"
    cards_html = "\n".join(cards)
    page.write_text(
        page.read_text(encoding="utf-8") + f'\n<div class="cards">\n{cards_html}\n</div>\n', encoding="utf-8"
    )
    _append(page, [f"gallery/{name}" for name in runs])
    missing = sorted(p.name for p in FOLDER.glob("*.png") if p.stem.removesuffix("-small") not in runs)
    unseen = sorted(scripts().keys() - runs.keys())
    if missing or unseen:
        raise RuntimeError(f"pictures of no run: {missing}; examples without a picture: {unseen}")


def _docstring(script: Path) -> tuple[str, str]:
    """The first sentence of a script's docstring, short enough for a title, and the rest as Markdown."""
    import ast
    import re

    text = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or script.stem
    first, _, rest = text.partition("\n\n")
    title = re.split(r"(?<=[a-z)])[.:] |, (?=[a-z])| \(", " ".join(first.split()))[0].rstrip(".:")
    body = " ".join(first.split()) + "\n\n" + rest
    body = re.sub(r"^( {4}.*|python examples.*|argosy launch.*)$", r"`\1`", body, flags=re.MULTILINE)
    return title, body.replace("`    ", "`").replace("*", r"\*").replace("<", "&lt;")


def printed(call: Any) -> str:
    """What a call prints."""
    stream = io.StringIO()
    with redirect_stdout(stream):
        call()
    return stream.getvalue()
