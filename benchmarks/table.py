"""Write the tables of figures in README.md (some of them), docs/FIGURES.md (one thread) and benchmarks/README.md (one
and two), and ``results/ratios.png``, from the recorded results.

``python benchmarks/table.py``. A row is a workload; a figure is the median over the rounds of the run. Nothing in it
is typed by hand.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

from workloads import EAGER, ERRORS, WORKLOADS, Workload, record_name

HERE = Path(__file__).resolve().parent
PAGES = {HERE.parent / "docs" / "FIGURES.md": (1,), HERE / "README.md": (1, 2)}
FIRST_PAGE = HERE.parent / "README.md"
FIRST = (
    ("gpt_step", ""), ("mlp_step", ""), ("resnet_step", "64"), ("llama_block", ""), ("attention", "1x6x2048"),
    ("rmsnorm", "8192x4096-backward"), ("pinn", "4096"), ("nth_derivative", "4"), ("laplacian", "100"),
    ("fft", "2048-forward"),
)  # fmt: skip
"""The ten figures of the first page: everyday training steps, kernels, derivatives, a transform."""
#: Models of `decode`, by what marks their records.
MODELS = {"": "Llama, 0.9 billion weights", "-moe": "with 8 experts, two a token", "-mla": "with latent attention"}
BEGIN, END = "<!-- figures: written by benchmarks/table.py -->", "<!-- end of figures -->"


def medians(record: dict[str, Any], what: str = "median_ms") -> dict[str, float]:
    """The median of a figure over the rounds, by framework."""
    found: dict[str, list[float]] = {}
    for figure in record["figures"]:
        if what in figure:
            found.setdefault(figure["framework"], []).append(figure[what])
    return {framework: statistics.median(values) for framework, values in found.items()}


def first_calls(record: dict[str, Any]) -> str:
    """Seconds of our first call less a step, with an empty object cache and, where rounds followed, a filled one."""
    ours = [f for f in record["figures"] if f["framework"] == "argosy" and "first_call_s" in f]
    latency = {f["round"]: f["first_call_s"] - f["median_ms"] / 1e3 for f in ours}
    warm = [v for k, v in latency.items() if k]
    return f"{latency[0]:.2f} / {f'{statistics.median(warm):.2f}' if warm else '-'} s"


def milliseconds(time: float) -> str:
    """Three digits, and never a power of ten."""
    return f"{time:,.0f} ms" if time >= 100 else f"{time:.3g} ms"


def microseconds(time: float) -> str:
    """Two digits."""
    return f"{time:.0f}" if time >= 10 else f"{time:#.2g}"


def share(workload: Workload, record: dict[str, Any], milliseconds: float) -> str:
    """The least time of the workload on that machine, as a share of ours."""
    least = workload.work.seconds(record["limits"]) if workload.work is not None and "limits" in record else 0.0
    return f"{least / milliseconds * 1e3:.0%}" if least else "-"


def row(workload: Workload, record: dict[str, Any]) -> str:
    """One line of the table."""
    times = medians(record)
    ours = times.pop("argosy")
    ordered = sorted((p for p in times.items() if not p[0].startswith("argosy")), key=lambda p: p[1])
    over = {f["framework"]: f"not done in {f['over_s']:.0f} s" for f in record["figures"] if "over_s" in f}
    shown = [f"{peer} {milliseconds(time)} ({time / ours:.2f}x)" for peer, time in ordered]
    peers = ", ".join([*shown, *(f"{peer} {reason}" for peer, reason in over.items() if peer not in times)])
    memory = medians(record, "peak_rss_mib")
    least = min((v for k, v in memory.items() if not k.startswith("argosy")), default=0)
    return (
        f"| {workload.title} | {milliseconds(ours)} | {share(workload, record, ours)} | {peers} "
        f"| {memory['argosy']:.0f} / {least:.0f} MiB | {first_calls(record)} |"
    )


def table(threads: int) -> list[str]:
    """The lines of the table of what was recorded on so many threads."""
    head = f"| {('one thread', 'two threads')[threads - 1]} | argosy | of the limit | peers in the same run "
    head += "| peak memory, ours / least of peers | compile, cold / warm |"
    found = recorded(threads)
    if not found:
        return []
    return [head, "|---|---|---|---|---|---|", *(row(w, r) for w, r in found), "", provenance([r for _, r in found])]


def provenance(records: list[dict[str, Any]]) -> str:
    """The sentence below a table: at which commit its rows were taken and on which processor, or at which ones."""
    places = [f"`{record['commit'][:10]}` ({record['machine']['cpu']})" for record in records]
    counts = Counter(places).most_common()
    if len(counts) == 1:
        return f"All rows were taken at commit {counts[0][0]}."
    return f"Rows by commit: {', '.join(f'{count} at {place}' for place, count in counts)}."


def short_table() -> list[str]:
    """The lines of the first page's table: ours beside the fastest peer, and least memory beside ours."""
    lines = ["| | argosy | fastest peer | | memory, ours / least of peers |", "|---|---|---|---|---|"]
    found = {(workload.script, workload.case): (workload, record) for workload, record in recorded(1)}
    for workload, record in (found[key] for key in FIRST):
        times, memory = medians(record), medians(record, "peak_rss_mib")
        ours = times["argosy"]
        peer, time = min((p for p in times.items() if not p[0].startswith("argosy")), key=lambda p: p[1])
        least = min(v for k, v in memory.items() if not k.startswith("argosy"))
        lines.append(
            f"| {workload.title} | {milliseconds(ours)} | {peer}: {milliseconds(time)} | {time / ours:.1f} times "
            f"| {memory['argosy']:.0f} / {least:.0f} MiB |"
        )
    return lines


def eager_table() -> list[str]:
    """The lines of the table of operators applied one by one: a step is 1000 of them, or 10 chains."""
    columns = {"argosy-eager": "argosy", "argosy-plain": "without native code"}
    columns |= {peer: peer for peer in ("numpy", "torch", "paddle", "jax")}
    lines = [f"| eager, one thread, microseconds | {' | '.join(columns.values())} |", "|---" * (len(columns) + 1) + "|"]
    records = []
    for case, title in EAGER.items():
        path = HERE / "results" / record_name("eager", case, 1)
        if path.exists():
            records.append(json.loads(path.read_text(encoding="utf-8")))
            times = medians(records[-1])
            applied = 10 if case.startswith("chain") else 1000
            shown = [microseconds(times[c] * 1e3 / applied) if c in times else "-" for c in columns]
            lines.append(f"| {title} | {' | '.join(shown)} |")
    return [*lines, "", provenance(records)]


def decode_table(threads: int, short: bool = False) -> list[str]:
    """The lines of the table of language models' steps: ours in five formats beside a peer's nearest ones; ``short``:
    of one row of text alone, without where they were taken."""
    paths = {title: HERE / "results" / f"decode{mark}-{threads}.json" for mark, title in MODELS.items()}
    records = {title: json.loads(path.read_text(encoding="utf-8")) for title, path in paths.items() if path.exists()}
    if not records:
        return []
    lines = [
        f"| a step of a language model, {('one thread', 'two threads')[threads - 1]} | argosy "
        "| of reading | llama.cpp | torch |",
        "|---|---|---|---|---|",
    ]
    shown = [(title, line, record) for title, record in records.items() for line in _decode_lines(record, short)]
    lines += [f"| {title}: {line}" for title, line, _ in shown]
    return lines if short else [*lines, "", provenance([record for *_, record in shown])]


def _decode_lines(record: dict[str, Any], short: bool) -> list[str]:
    """The lines of one model: where its record has peers, those beside one."""
    rows = {(r["framework"], r["case"], r["rows"], r["cached"]): r for r in record["rows"]}
    has_peers, lines = any(framework != "argosy" for framework, *_ in rows), []
    nearest = {"bfloat16": "f16", "int8": "q8_0", "int4": "q4_0", "w8a8": "q8_0", "w4a8": "q4_0"}
    for (framework, case, count, cached), row in rows.items():
        if framework != "argosy" or (short and (count != 1 or case.endswith("a8"))):
            continue
        peers = [rows.get((*peer, count, cached)) for peer in (("llama.cpp", nearest[case]), ("torch", case))]
        if has_peers and not any(peers):
            continue
        work = "a prompt of 128" if count == "prefill" else f"{count} x {cached} cached"
        shown = [f"{milliseconds(p['ms'])} ({p['ms'] / row['ms']:.2f}x)" if p else "-" for p in peers]
        share = "-" if count == "prefill" else f"{row['share']:.0%}"
        lines.append(f"{case}, {work} | {milliseconds(row['ms'])} | {share} | {' | '.join(shown)} |")
    return lines


def error_table() -> list[str]:
    """The lines of the table of training until an error is reached."""
    columns = {"argosy": "argosy", "argosy-deepxde": "DeepXDE on argosy, eager", "torch-deepxde": "DeepXDE on torch"}
    lines = [
        f"| training until an error is reached, one thread | {' | '.join(columns.values())} |",
        "|---|---|---|---|",
    ]
    for case, title in ERRORS.items():
        path = HERE / "results" / f"time_to_error-{case}-1.json"
        if path.exists():
            figures = {f["framework"]: f for f in json.loads(path.read_text(encoding="utf-8"))["figures"]}
            shown = [_reached(figures.get(framework)) for framework in columns]
            lines.append(f"| {title} | {' | '.join(shown)} |")
    return lines if len(lines) > 2 else []


def _reached(figure: dict[str, Any] | None) -> str:
    if figure is None or "over_s" in figure:
        return "-"
    steps = f"{figure['steps']:,} steps, {figure['peak_rss_mib']:.0f} MiB"
    return (
        f"{figure['seconds']:.3g} s ({steps})" if figure["reached"] else f"not in {figure['seconds']:.0f} s ({steps})"
    )


def recorded(threads: int) -> list[tuple[Workload, dict[str, Any]]]:
    """Workloads with their records, in the order of the table."""
    paths = [(w, HERE / "results" / w.record(threads)) for w in WORKLOADS]
    return [(w, json.loads(path.read_text(encoding="utf-8"))) for w, path in paths if path.exists()]


def plot(records: list[tuple[Workload, dict[str, Any]]], path: Path) -> None:
    """How many times longer each peer takes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 0.42 * len(records) + 1.2), layout="constrained")
    axes = figure.subplots()
    for offset, (peer, colour) in enumerate((("torch", "#c8553d"), ("jax", "#3d6fc8"))):
        pairs = [(i, medians(r)) for i, (_, r) in enumerate(records)]
        shown = [(i, m[peer] / m["argosy"]) for i, m in pairs if peer in m]
        axes.barh([i + 0.4 * offset for i, _ in shown], [v for _, v in shown], height=0.38, color=colour, label=peer)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks([i + 0.2 for i in range(len(records))], [w.title for w, _ in records], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("time of the peer / time of argosy, one thread, same run")
    axes.legend(loc="lower right", fontsize=8)
    figure.savefig(path, dpi=120)


def replace(page: Path, tables: list[list[str]]) -> None:
    """Put tables between the markers of a page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    text = "\n\n".join(map("\n".join, tables))
    page.write_text(before + BEGIN + "\n" + text + "\n" + END + rest.partition(END)[2], encoding="utf-8")


def main() -> None:
    """Replace the tables between the markers and draw the plot."""
    replace(FIRST_PAGE, [short_table(), decode_table(1, short=True)])
    for page, counts in PAGES.items():
        each = [*(table(threads) for threads in counts), eager_table(), *map(decode_table, counts)]
        each.append(error_table() if 2 in counts else [])
        replace(page, [lines for lines in each if lines])
    plot(recorded(1), HERE / "results" / "ratios.png")


if __name__ == "__main__":
    main()
