"""The pages that lie in the repository, put where the site has them, with links that fit there."""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import wheels  # noqa: E402

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
_CODE = re.compile(r"(^```.*?^```$|``.+?``|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


GENERATED = (
    "tensor",
    "settings",
    "commands",
    "ir_prim",
    "ir_prim_elementwise",
    "ir_builtin",
    "ir_control",
    "ir_ad",
    "ir_test",
)


def pages() -> dict[str, str]:
    """By page of the repository, the page of the site."""
    found = {f"docs/site/{name}.md": f"{name}.md" for name in ("index", "tutorials", "gallery", "reference")}
    found |= {f"docs/{p.name}": f"guide/{p.name}" for p in sorted((ROOT / "docs").glob("*.md"))}
    found |= {"CONTRIBUTING.md": "guide/CONTRIBUTING.md", "benchmarks/README.md": "guide/BENCHMARKS.md"}
    found |= {f"packages/{p.name}/README.md": f"packages/{p.name}.md" for p in sorted((ROOT / "packages").iterdir())}
    found |= {
        f"docs/tutorials/{p.name}": f"tutorials/{p.stem}.ipynb" for p in (ROOT / "docs" / "tutorials").glob("*.py")
    }
    return found


def _places() -> dict[str, str]:
    """What links of the repository's pages point at, beside pages: where the site has it."""
    found = pages() | {"README.md": "index.md"}
    found |= {f"docs/site/reference/{name}.md": f"reference/{name}.md" for name in GENERATED}
    found |= {name.removesuffix("/README.md"): page for name, page in found.items() if name.endswith("/README.md")}
    found |= {"examples": "gallery.md", "examples/quickstart": "gallery/quickstart.md"}
    for script in (ROOT / "docs" / "gallery").glob("*.png"):
        found[f"docs/gallery/{script.name}"] = f"images/{script.name}"
    for script in ROOT.glob("examples/*/*.py"):
        name = script.relative_to(ROOT).as_posix()
        folder = script.parent.name
        stem = {"quickstart": "quickstart", "distributed": f"distributed_{script.stem}"}.get(folder, script.stem)
        if (ROOT / "docs" / "gallery" / f"{stem}.png").exists():
            found[name] = f"gallery/{stem}.md"
    for folder in ("science", "scripts", "distributed"):
        found[f"examples/{folder}"] = found[f"examples/{folder}/README.md"] = "gallery.md"
    for image in (ROOT / "benchmarks" / "results").glob("*.png"):
        found[image.relative_to(ROOT).as_posix()] = f"images/{image.name}"
    return found


def relink(text: str, home: str, page: str, places: dict[str, str]) -> str:
    """The repository's page ``home`` as the site's ``page``: links to what the site lacks become plain text."""

    def link(found: re.Match[str]) -> str:
        image, words, target = found.groups()
        if re.match(r"[a-z]+:|#", target):
            return found[0]
        path, _, anchor = target.partition("#")
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(home), path))
        if wanted not in places:
            return words
        there = posixpath.relpath(places[wanted], posixpath.dirname(page) or ".")
        return f"{image}[{words}]({there}{'#' + anchor if anchor else ''})"

    parts = _CODE.split(text)
    # Code inside of a link's words is no code block: join it again before looking for links.
    if not any(part.startswith("```") for part in parts):
        return _LINK.sub(link, text)
    blocks = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(block if block.startswith("```") else _LINK.sub(link, block) for block in blocks)


def write(source: Path) -> None:
    """Write all of them below ``source``."""
    places = _places()
    for home, page in pages().items():
        if page.endswith(".md"):
            target = source / page
            target.parent.mkdir(parents=True, exist_ok=True)
            text = (ROOT / home).read_text(encoding="utf-8")
            if home == "docs/INTERFACES.md":  # signatures, which no lexer of Python takes
                text = text.replace("```python", "```text")
            target.write_text(relink(text, home, page, places), encoding="utf-8")
    for home, page in places.items():
        if page.startswith("images/"):
            (source / "images").mkdir(exist_ok=True)
            shutil.copy(ROOT / home, source / page)
    (source / "guide" / "RELEASES.md").write_text(wheels.release_notes(), encoding="utf-8")


def relative(target: str, page: str) -> str:
    """The link from one page of the site to another."""
    return os.path.relpath(target, os.path.dirname(page) or ".")
