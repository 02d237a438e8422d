"""The wheel's answers on disk: for each family one JSON of what came, with the numbers or with an archive of them.

The JSON has one line for a case: ``{"digest": ..., "outputs": [["float32", [2, 3], [0.5, ...]], ...], "gradients":
[...]}`` or ``{"digest": ..., "error": "ValueError"}``. Numbers stand in it where there are few, so that a change can be
read; else they follow each other in the order of the JSON, one array per dtype, in a file of arrays.
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

INLINE = 1 << 14
"""How many numbers a family may have for them to stand in its JSON."""


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
    inline = sum(np.size(v) for _, o in outcomes for v in (*o.outputs, *o.gradients)) <= INLINE

    def described(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return {"plain": value}
        if inline:
            return [str(value.dtype), list(value.shape), _texts(value)]
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
    archive = FOLDER / f"{family}.npz"
    if inline:
        archive.unlink(missing_ok=True)
        return
    np.savez_compressed(archive, **{name: np.concatenate(parts) for name, parts in sorted(pools.items())})


def _texts(array: np.ndarray) -> list[Any]:
    """The elements as numbers with as few digits as tell them apart; complex ones as two each."""
    flat = np.ravel(array)
    flat = flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat
    return [float(str(v)) for v in flat] if flat.dtype.kind == "f" else flat.tolist()


def _from_texts(dtype: str, shape: list[int], numbers: list[Any]) -> np.ndarray:
    kind = np.dtype(dtype)
    part = np.zeros(0, kind).real.dtype if kind.kind == "c" else kind
    return np.array(numbers, part).view(kind).reshape(shape)


def load(family: str) -> dict[str, tuple[str, Outcome]]:
    """Digest and outcome by case id; empty where nothing was recorded yet."""
    path = FOLDER / f"{family}.jsonl"
    if not path.exists():
        return {}
    pools: dict[str, np.ndarray] = {}
    if (FOLDER / f"{family}.npz").exists():
        with np.load(FOLDER / f"{family}.npz") as archive:
            pools = {name: archive[name] for name in archive.files}
    position = dict.fromkeys(pools, 0)

    def restored(entry: Any) -> Any:
        if isinstance(entry, dict):
            return entry["plain"]
        dtype, shape, *numbers = entry
        if numbers:
            return _from_texts(dtype, shape, *numbers)
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
