"""Build the site into ``dist/site``: ``hatch run docs``. It needs no network once its libraries are installed.

The generator is Sphinx with MyST: it is kept by many, reads the Markdown that the repository has, checks every link
between pages, searches without a server, and its pages need nothing from elsewhere. (MkDocs with mkdocstrings reads
source, where most of argosy's names are found when they are used; its theme is no longer developed.) Those libraries
are no dependency of argosy. They are listed under ``tool.hatch.envs.docs`` in ``pyproject.toml``, and where they are
missing this script starts itself again in an environment that has them.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))


def _start_again() -> int:
    """Run this script where the libraries of the site are."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        libraries = tomllib.load(file)["tool"]["hatch"]["envs"]["docs"]["dependencies"]
    packages = sorted(path.parent for path in (ROOT / "packages").glob("*/pyproject.toml"))
    command = [sys.executable, "-m", "uv", "run", "--no-project", "--isolated", "--python", sys.executable]
    command += [word for library in libraries for word in ("--with", library)]
    command += [word for package in packages for word in ("--with-editable", str(package))]
    return subprocess.run([*command, "python", *sys.argv], check=False).returncode


def main() -> int:
    """Write the sources, then let Sphinx make pages of them; a warning is an error."""
    if importlib.util.find_spec("myst_nb") is None:
        return _start_again()
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist" / "site")
    out = parser.parse_args().out.resolve()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        _timed("pages, reference and gallery", lambda: _write(source))
        _timed("tutorials", lambda: _run_tutorials(source))
        return _timed("site", lambda: _sphinx(source, out))


def _timed(what, work):
    from argosy_tensorcore.wait_notice import announce_wait

    began = time.perf_counter()
    with announce_wait(what):
        result = work()
    print(f"{what}: {time.perf_counter() - began:.0f} s", flush=True)
    return result


def _write(source: Path) -> None:
    import generated
    import staging

    staging.write(source)
    generated.write(source)


def _run_tutorials(source: Path) -> None:
    import notebooks

    notebooks.write(source / "tutorials")


def _sphinx(source: Path, out: Path) -> int:
    from sphinx.cmd.build import build_main

    shutil.rmtree(out, ignore_errors=True)
    cache = source.parent / "doctrees"
    arguments = ["-W", "--keep-going", "-q", "-j", "2", "-c", str(HERE), "-d", str(cache), str(source), str(out)]
    return build_main(arguments)


if __name__ == "__main__":
    sys.exit(main())
