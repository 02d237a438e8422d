"""Pages in a real browser: headless Chromium opens the site, the gallery and a report of explain without a network,
on a wide and on a narrow screen. Skipped where there is no Chromium."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from built_site import site  # noqa: F401

import argosy as paddle

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")

LOOK = """
<!doctype html><html><body>
<iframe id="page" width="{width}" height="900" src="{address}"></iframe><pre id="found"></pre>
<script>
page.onload = () => {{
  const inside = page.contentDocument, shown = e => e.getClientRects().length > 0;
  const name = e => (e.innerText || e.getAttribute("aria-label") || e.title || e.alt || e.placeholder || "").trim();
  const active = [...inside.querySelectorAll("a[href], button, input:not([type=hidden]), summary")].filter(shown);
  const reached = active.filter(e => {{ e.focus(); return inside.activeElement === e; }});
  found.textContent = JSON.stringify({{
    title: inside.title, language: inside.documentElement.lang, headings: inside.querySelectorAll("h1").length,
    text: inside.body.innerText.length, wide: inside.documentElement.scrollWidth, width: page.clientWidth,
    pictures: [...inside.images].filter(i => shown(i) && (i.loading = "eager") && i.complete && !i.naturalWidth)
      .map(i => i.src),
    active: active.length, unreached: active.filter(e => !reached.includes(e)).map(e => e.outerHTML.slice(0, 120)),
    ahead: active.filter(e => e.tabIndex > 0).length,
    nameless: active.filter(e => !name(e) && !e.querySelector("img[alt], svg, [aria-label]") && !e.labels?.length)
      .map(e => e.outerHTML.slice(0, 120)),
  }});
}};
</script></body></html>
"""


def look(page: Path, width: int, folder: Path) -> dict[str, Any]:
    """What a browser without a network finds on a page of this width."""
    frame = folder / f"look-{width}.html"
    frame.write_text(LOOK.format(width=width, address=page.as_uri()), encoding="utf-8")
    done = subprocess.run(
        [*_command(folder), "--virtual-time-budget=8000", "--dump-dom", frame.as_uri()],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found is not None
    assert found[1], f"{page.name} did not load"
    result: dict[str, Any] = json.loads(html.unescape(found[1]))
    return result


def _command(folder: Path) -> list[str]:
    """The browser: no host has an address, and pages of the disk may look into each other."""
    assert CHROMIUM is not None
    return [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--host-resolver-rules=MAP * ~NOTFOUND", "--allow-file-access-from-files", "--disable-web-security",
        f"--user-data-dir={folder / 'profile'}",
    ]  # fmt: skip


def screenshot(page: Path, width: int, target: Path) -> int:
    """A picture of the page; gives its size in bytes."""
    command = [*_command(target.parent), f"--window-size={width},1000", f"--screenshot={target}", page.as_uri()]
    subprocess.run(command, capture_output=True, check=True)
    return target.stat().st_size


def _check(found: dict[str, Any]) -> None:
    """What every page needs: words, one heading, a language, names for what is pressed, and no scrolling sideways."""
    assert found["text"] > 200
    assert found["headings"] == 1
    assert found["language"]
    assert found["pictures"] == []
    assert found["wide"] <= found["width"], "the page is wider than the screen"
    assert found["nameless"] == []
    assert found["unreached"] == [], "something cannot be reached by keyboard"
    assert found["ahead"] == 0, "something takes the focus out of order"


PAGES = (
    "index.html", "gallery.html", "tutorials/pinn.html", "tutorials/compiled_step.html", "reference.html",
    "reference/tensor.html", "guide/FIGURES.html", "gallery/burgers.html",
)  # fmt: skip


@pytest.mark.exhaustive
@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_site(name: str, width: int, site: Path, tmp_path: Path) -> None:  # noqa: F811
    """It is read on a telephone and on a desk."""
    _check(look(site / name, width, tmp_path))
    assert screenshot(site / name, width, tmp_path / "page.png") > 8_000


@pytest.mark.parametrize("width", [390, 1200])
def test_a_report_of_explain(width: int, tmp_path: Path) -> None:
    """One page, with everything in it."""
    weight = paddle.ones([16, 16])
    report = paddle.explain(lambda x: paddle.nn.functional.softmax(x @ weight), paddle.ones([8, 16]), measure=False)
    report.save(str(tmp_path / "report.html"))
    _check(look(tmp_path / "report.html", width, tmp_path))
    assert screenshot(tmp_path / "report.html", width, tmp_path / "page.png") > 8_000
