"""Record the first losses of the scripts in examples/scripts on the real wheel: run with its Python.

Each script is run with its import changed from argosy to paddle; ``losses.json`` receives what ``main`` gives.
"""

from __future__ import annotations

import json
import sys
import tempfile
from importlib import import_module
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "examples" / "scripts"
NAMES = ("digits", "text_lstm", "gpt", "vae", "vit", "seq2seq")
STEPS = 4


def main() -> None:
    """Write losses.json."""
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        for source in SCRIPTS.glob("*.py"):
            text = source.read_text().replace("import argosy as paddle", "import paddle")
            (Path(folder) / source.name).write_text(
                text.replace("import argosy.nn", "import paddle.nn").replace("from argosy", "from paddle")
            )
        found = {name: import_module(name).main(STEPS) for name in NAMES}
    Path(__file__).with_name("losses.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
