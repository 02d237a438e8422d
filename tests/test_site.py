"""The site is built from a clean copy without a warning; links lead somewhere; pages are small and need no network."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from built_site import site  # noqa: F401
from workspace import ROOT

LARGEST = 300_000
pytestmark = pytest.mark.exhaustive
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
OPTIONAL = {"p", "li", "tr", "td", "th", "dd", "dt", "thead", "tbody", "option", "colgroup"}
"""Elements that HTML lets end by themselves."""


class Page(HTMLParser):
    """What a page has: ids, links, what it loads, pictures without words, elements that are not closed."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: Counter[str] = Counter()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.faults: list[str] = []
        self._open: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
        self.faults += [f"<{tag}> is not closed" for tag in self._open if tag not in OPTIONAL]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element says."""
        found = {key: value or "" for key, value in attrs}
        if len(found) != len(attrs):
            self.faults.append(f"<{tag}> has an attribute twice")
        if "id" in found:
            self.ids[found["id"]] += 1
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in ("img", "script", "iframe", "source") and found.get("src"):
            self.loaded.append(found["src"])
        if tag == "link" and found.get("rel") not in ("search", "index", "next", "prev", "canonical"):
            self.loaded.append(found.get("href", ""))
        if tag == "img" and "alt" not in found:
            self.faults.append(f"a picture without words: {found.get('src', '')[:60]}")
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close it, and what may end with it."""
        while self._open and self._open[-1] != tag and self._open[-1] in OPTIONAL:
            self._open.pop()
        if self._open and self._open[-1] == tag:
            self._open.pop()
        elif tag not in VOID and tag not in OPTIONAL:
            self.faults.append(f"</{tag}> ends what is not open")


@pytest.fixture(scope="module")
def parsed(site: Path) -> dict[Path, Page]:  # noqa: F811
    """Every page."""
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def test_pages_are_small_and_well_formed(parsed: dict[Path, Page]) -> None:
    """No page is larger than 300 kB; elements are closed, ids unique, pictures described."""
    assert {p.name: p.stat().st_size for p in parsed if p.stat().st_size > LARGEST} == {}
    assert {p.name: page.faults for p, page in parsed.items() if page.faults} == {}
    doubled = {p.name: [i for i, n in page.ids.items() if n > 1] for p, page in parsed.items()}
    assert {name: ids for name, ids in doubled.items() if ids} == {}


def test_every_link_leads_to_a_page_and_to_a_place_on_it(site: Path, parsed: dict[Path, Page]) -> None:  # noqa: F811
    """Files and anchors."""
    assert list(_dead(site, parsed)) == []


def _dead(folder: Path, parsed: dict[Path, Page]) -> Iterator[str]:
    for path, page in parsed.items():
        for link in (*page.links, *page.loaded):
            if re.match(r"[a-z]+:", link):
                continue
            target, _, anchor = link.partition("?")[0].partition("#")
            there = (path.parent / unquote(target)).resolve() if target else path
            if not there.exists():
                yield f"{path.relative_to(folder)}: {link}"
            elif anchor and there in parsed and unquote(anchor) not in parsed[there].ids:
                yield f"{path.relative_to(folder)}: no {link}"


def test_pages_load_nothing_from_elsewhere(site: Path, parsed: dict[Path, Page]) -> None:  # noqa: F811
    """Neither pages nor their style sheets: they are read without a network."""
    loaded = {(p.name, what) for p, page in parsed.items() for what in page.loaded}
    assert {pair for pair in loaded if re.match(r"(https?:)?//", pair[1])} == set()
    sheets = {p.name: re.findall(r"url\(['\"]?(?:https?:)?//[^)]*", p.read_text("utf-8")) for p in site.rglob("*.css")}
    assert {name: urls for name, urls in sheets.items() if urls} == {}


def test_notebooks_are_offered_with_what_they_printed(site: Path) -> None:  # noqa: F811
    """Each tutorial is a file to download in which every cell was run, none ended with an error, and which shows what
    is said of mistakes."""
    notebooks = {p.name: json.loads(p.read_text(encoding="utf-8")) for p in site.rglob("*.ipynb")}
    assert sorted(notebooks) == sorted(f"{p.stem}.ipynb" for p in (ROOT / "docs" / "tutorials").glob("*.py"))
    for name, notebook in notebooks.items():
        code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code" and "".join(cell["source"]).strip()]
        assert all(cell["execution_count"] for cell in code), name
        kinds = {output["output_type"] for cell in code for output in cell["outputs"]}
        assert "error" not in kinds, name
        printed = "\n".join("".join(output.get("text", "")) for cell in code for output in cell["outputs"])
        assert len(re.findall(r"^\w+: .", printed, re.MULTILINE)) >= 3, name


def test_the_index_finds_names_of_every_module(site: Path) -> None:  # noqa: F811
    """The inventory that other sites link by."""
    from zlib import decompress

    raw = (site / "objects.inv").read_bytes()
    names = decompress(raw[raw.index(b"zlib.\n") + 6 :]).decode()
    for name in (
        "argosy.matmul",
        "argosy.nn.Conv2D",
        "argosy.optimizer.AdamW",
        "argosy_pir.Program",
        "argosy_infer.Predictor",
    ):
        assert re.search(rf"^{re.escape(name)} py:", names, re.MULTILINE), name
