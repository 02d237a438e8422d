"""Make the wheels of all packages, and the notes of the release out of their changelogs: ``hatch run build``.

Both go into ``dist/``. What is built is what lies in ``packages/``; nobody keeps a list.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def packages() -> list[Path]:
    """The folders of the packages."""
    return sorted(path.parent for path in (ROOT / "packages").glob("*/pyproject.toml"))


def version(package: Path) -> str:
    """The version that the source of a package states."""
    (about,) = package.glob("src/*/__about__.py")
    found = re.search(r'^__version__ = "([^"]+)"$', about.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise ValueError(f"{about} has no line __version__ = ...")
    return found[1]


def changes(package: Path) -> str:
    """What the changelog of a package says of its version. Raises ValueError where it begins with another one."""
    page = package / "CHANGELOG.md"
    title, *sections = re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    head, _, text = (sections or [""])[0].partition("\n")
    if head.split(" ")[0] != version(package):
        raise ValueError(f"{page} begins with {head!r}, but the package is {version(package)}")
    name = title.strip().removeprefix("# Changelog of ")
    return f"## {name} {head}\n\n{text.strip()}\n"


def release_notes() -> str:
    """The newest changes of all packages as one page."""
    return "\n".join(["# Release notes\n", *map(changes, packages())])


def build(package: Path, folder: Path) -> None:
    """Make the wheel of one package."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=package, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{package.name} was not built:\n{done.stdout}{done.stderr}")


def main() -> None:
    """Build into ``--out``."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    folder = parser.parse_args().out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("argosy*.whl"):
        old.unlink()
    (folder / "RELEASE_NOTES.md").write_text(release_notes(), encoding="utf-8")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda package: build(package, folder), packages()))
    for wheel in sorted(folder.glob("*.whl")):
        print(f"{wheel.stat().st_size / 1024:6.0f} KiB  {wheel.name}")


if __name__ == "__main__":
    main()
