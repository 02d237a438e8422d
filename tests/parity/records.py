"""The wheel's answers on disk: for each family one JSON of what came and one archive of the numbers.

The JSON has one line for a case: ``{"digest": ..., "outputs": [["float32", [2, 3]], ...], "gradients": [...]}`` or
``{"digest": ..., "error": "ValueError"}``. The numbers follow each other in the order of the JSON, one array per dtype.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from parity.case import Case
from parity.inputs import Input, base_array
from parity.runner import Outcome

__all__ = ["FOLDER", "digest", "load", "save"]

FOLDER = Path(__file__).parent / "records"


def digest(case: Case) -> str:
    """A short hash of the drawn inputs, so that a record is never compared with a run on other numbers."""
    found = hashlib.sha256()
    for salt, spec in enumerate(_specs((case.args, tuple(case.kwargs.values()), case.inputs))):
        found.update(base_array(spec, salt).tobytes())
    return found.hexdigest()[:8]


def _specs(value: Any) -> list[Input]:
    if isinstance(value, Input):
        return [value]
    return [s for v in value for s in _specs(v)] if isinstance(value, (list, tuple)) else []


def save(family: str, version: str, outcomes: dict[Case, Outcome] | list[tuple[Case, Outcome]]) -> None:
    """Write the records of ``family`` made with the wheel of that version."""
    pools: dict[str, list[np.ndarray]] = {}

    def described(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return {"plain": value}
        pools.setdefault(str(value.dtype), []).append(np.ravel(value))
        return [str(value.dtype), list(value.shape)]

    lines = [json.dumps({"wheel": version})]
    for case, outcome in outcomes:
        entry: dict[str, Any] = {"case": case.id, "digest": digest(case)}
        if outcome.error:
            entry["error"] = outcome.error
        else:
            entry["outputs"] = [described(v) for v in outcome.outputs]
            entry["gradients"] = [described(v) for v in outcome.gradients]
            if outcome.gradient_error:
                entry["gradient_error"] = outcome.gradient_error
        lines.append(json.dumps(entry, separators=(",", ":")))
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{family}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    arrays = {name: np.concatenate(parts) for name, parts in sorted(pools.items())}
    np.savez_compressed(FOLDER / f"{family}.npz", **arrays)


def load(family: str) -> dict[str, tuple[str, Outcome]]:
    """Digest and outcome by case id; empty where nothing was recorded yet."""
    path = FOLDER / f"{family}.jsonl"
    if not path.exists():
        return {}
    with np.load(FOLDER / f"{family}.npz") as archive:
        pools = {name: archive[name] for name in archive.files}
    position = dict.fromkeys(pools, 0)

    def restored(entry: Any) -> Any:
        if isinstance(entry, dict):
            return entry["plain"]
        dtype, shape = entry
        count = int(np.prod(shape, dtype=np.int64))
        start = position[dtype]
        position[dtype] = start + count
        return pools[dtype][start : start + count].reshape(shape)

    found = {}
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        entry = json.loads(line)
        outputs = [restored(e) for e in entry.get("outputs", ())]
        gradients = [restored(e) for e in entry.get("gradients", ())]
        outcome = Outcome(outputs, gradients, entry.get("error", ""), entry.get("gradient_error", ""))
        found[entry["case"]] = (entry["digest"], outcome)
    return found
