"""A device beside the CPU device on the same cores, by the conformance kit's performance report, and its goals.

    python benchmarks/devices.py                          # opencl, or --device NAME
    python benchmarks/devices.py --rounds 12 --record     # two minutes; keeps results/devices-NAME.json

Each round measures every figure on the device and on the CPU in turn, and the best of all rounds count. Goals: gelu,
softmax and RMSNorm at 0.6 of the CPU device's rate, products and attention at 0.3, and 10 us of a launch beyond the
plug-in's own. What is missed is printed, and kept.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from side_by_side import commit, machine

from argosy.device.performance import measure

SHARES = {"gelu": 0.6, "softmax": 0.6, "rms_norm": 0.6, "matmul": 0.3, "attention": 0.3}
LAUNCH = "launch beyond the plug-in's own"
LAUNCH_MICROSECONDS = 10.0


def best_of(place: str, rounds: int, size: int) -> dict[str, dict[str, Any]]:
    """The best figures of several reports: of microseconds the fewest, of rates the highest."""
    found: dict[str, dict[str, Any]] = {}
    for _ in range(rounds):
        for name, unit, there, host in measure(place, size):
            better = min if unit == "us" else max
            before = found.get(name, {"device": there, "cpu": host})
            best = {"device": better(before["device"], there)}
            if host is not None:
                best["cpu"] = better(before["cpu"], host)
                best["share"] = best["cpu"] / best["device"] if unit == "us" else best["device"] / best["cpu"]
            found[name] = {"unit": unit, **best}
    return found


def missed_goals(figures: dict[str, dict[str, Any]]) -> list[str]:
    """A sentence for each goal that was missed."""
    missed = [
        f"{name}: {row['share']:.2f} of the CPU device, not {SHARES[kind]}"
        for name, row in figures.items()
        if (kind := name.partition(" ")[0]) in SHARES and row["share"] < SHARES[kind]
    ]
    microseconds = figures[LAUNCH]["device"]
    return missed + [f"{LAUNCH}: {microseconds:.1f} us"] * (microseconds > LAUNCH_MICROSECONDS)


def main() -> None:
    """Measure, print, and keep what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="opencl")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--size", type=int, default=1024, help="rows and columns of the matrices")
    parser.add_argument("--record", action="store_true", help="write results/devices-NAME.json")
    options = parser.parse_args()
    figures = best_of(options.device, options.rounds, options.size)
    for name, row in figures.items():
        share = f"{row['share']:>8.2f} of the CPU device" if "share" in row else ""
        print(f"{name:34}{row['device']:>10.3g} {row['unit']:8}{share}")
    missed = missed_goals(figures)
    print("\n".join(missed) or "all goals are met")
    if options.record:
        rounded = {
            name: {key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()}
            for name, row in figures.items()
        }
        command = (
            f"python benchmarks/devices.py --device {options.device} --rounds {options.rounds} --size {options.size}"
        )
        record = {"workload": "devices", "command": command, "commit": commit(), "machine": machine()}
        path = Path(__file__).parent / "results" / f"devices-{options.device}.json"
        path.write_text(json.dumps({**record, "missed": missed, "figures": rounded}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
