"""Run examples as they stand and keep their pictures: ``python docs/site/record_gallery.py [NAME ...]``, all by
default.

Each example makes its picture itself. It is kept in ``docs/gallery`` with a thumbnail; ``runs.json`` has the
command, the seconds that it took and the last lines that it printed. The site is built from these: running all
examples takes half an hour.
"""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "gallery"
RUNS = FOLDER / "runs.json"
HELPERS = {"pinn.py", "spectral.py", "common.py", "data.py", "progress.py", "generate.py"}
WIDE = 1100
MOST_OFF = 24
"""By how much a colour may differ where there are only 256 of them."""


def scripts() -> dict[str, str]:
    """Each example's script by its name in the gallery."""
    found = {}
    for folder in ("science", "scripts", "quickstart", "distributed"):
        for path in sorted((ROOT / "examples" / folder).glob("*.py")):
            if path.name not in HELPERS and not (folder == "quickstart" and path.name != "train.py"):
                name = {"quickstart": "quickstart", "distributed": f"distributed_{path.stem}"}.get(folder, path.stem)
                found[name] = path.relative_to(ROOT).as_posix()
    return found


def command(script: str, plots: str) -> list[str]:
    """The words of the command line."""
    if "quickstart" in script:
        return ["python", script, "--out", plots]
    if "distributed" in script:
        return ["argosy", "launch", "--nproc_per_node", "2", "--log_dir", f"{plots}/log", script, "--plots", plots]
    return ["python", script, "--plots", plots]


def record(name: str, script: str) -> dict[str, Any]:
    """Run one; keep its picture; give what is known of the run."""
    with tempfile.TemporaryDirectory() as plots:
        words = command(script, plots)
        words[:1] = {"python": [sys.executable], "argosy": [sys.executable, "-m", "argosy.cli"]}[words[0]]
        began, used = time.perf_counter(), _processor_seconds()
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        seconds, used = time.perf_counter() - began, _processor_seconds() - used
        if done.returncode:
            raise RuntimeError(f"{name} ended with {done.returncode}\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
        (picture,) = Path(plots).glob("*.png")
        _keep(picture, name)
        lines = [line for line in done.stdout.splitlines() if plots not in line and "\r" not in line]
    printed = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines[-8:]]
    return {
        "script": script,
        "seconds": round(seconds, 1),
        "processor_seconds": round(used, 1),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "printed": printed,
    }


def _processor_seconds() -> float:
    """What processes that have ended used, whatever ran beside them."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _keep(picture: Path, name: str) -> None:
    """As few pixels as show it, and 256 colours where those are enough."""
    from PIL import Image, ImageChops, ImageStat

    with Image.open(picture) as image:
        whole = image.convert("RGB")
    for suffix, width in (("", WIDE), ("-small", 320)):
        scale = min(width / whole.width, 1)
        small = whole.resize((round(whole.width * scale), round(whole.height * scale)), Image.Resampling.LANCZOS)
        few = small.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        errors = ImageStat.Stat(ImageChops.difference(small, few.convert("RGB"))).extrema
        kept = small if max(most for _, most in errors) > MOST_OFF else few
        kept.save(FOLDER / f"{name}{suffix}.png", optimize=True)


def main() -> None:
    """Record those named, or all."""
    known = scripts()
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or known:
        found = record(name, known[name])
        runs = json.loads(RUNS.read_text(encoding="utf-8")) if RUNS.exists() else {}
        runs[name] = found
        RUNS.write_text(json.dumps(dict(sorted(runs.items())), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{name}: {found['seconds']} s; {found['printed'][-1] if found['printed'] else ''}", flush=True)


if __name__ == "__main__":
    main()
