"""What schedules and their lists cost: microseconds an instruction, idle time beside the closed forms, transfers hidden
behind computation, and how much faster two stages over MPI are than one process.

``python benchmarks/distributed_pipeline.py [--idle] [--steps 20] [--unit 0.1] [--threads 4 8]``: pieces sleep ``unit``
seconds on threads and on a modelled link whose transfers take half of what is computed; a GPT is trained in 8
microbatches, one core each. As many processes that train apart, each the whole model, say what the machine leaves them;
with the idle time of the schedule's closed form that is the speedup which nothing surpasses. With ``--idle`` pieces do
nothing but sleep, which takes a minute and hardly any processor.
Writes results/distributed_pipeline.json, where it keeps what was not measured anew. Training needs a quiet machine with
a core a rank.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from shared_machine import shared_limits
from side_by_side import commit, machine

HERE = Path(__file__).resolve()
BATCH, TOKENS, VOCABULARY, WIDTH, LAYERS, HEADS, MICROBATCHES = 16, 128, 1024, 256, 4, 4, 8


def instruction_microseconds(count: int = 3000) -> float:
    """A piece that does nothing, a sum over one rank that is started, and its wait: the mean of the three."""
    from argosy_autoparallel.schedule import InstructionList, Ref, Run, Signature, Start, Wait, run
    from argosy_hwadapt.solo import SoloCommunicator
    from argosy_pir.types import TensorType

    x, y = Ref("x"), Ref("y")
    three = (Run("nothing"), Start("all_reduce", x, y), Wait(y))
    one = InstructionList(three * count, {("nothing", None): Signature()}, {x: TensorType([4], "float32")})
    pieces, values = {("nothing", None): lambda: ()}, {x: np.ones(4, np.float32)}
    seconds = []
    for _ in range(5):
        begin = time.process_time()
        run(one, pieces, values, {(): SoloCommunicator()})
        seconds.append(time.process_time() - begin)
    return min(seconds) / (3 * count) * 1e6


def idle_shares(ranks: int, unit: float) -> list[dict[str, Any]]:
    """By schedule, the share of a step in which a rank runs no piece: on threads, where pieces take the time that they
    were seen to sleep, and by the simulator; both are means over ranks. ``slower`` is the step by the simulator's."""
    sys.path.insert(0, str(HERE.parents[1] / "packages" / "autoparallel" / "tests"))
    from stages import functions, given, lists_of, values

    from argosy_autoparallel.pipeline import schedules
    from argosy_autoparallel.schedule import Costs, run_on_threads, simulate

    m, found = 2 * ranks, []
    cases = {
        "1F1B": (schedules.one_f_one_b(ranks, m), ranks), "ZB-H1": (schedules.zb_h1(ranks, m), ranks),
        "VPP": (schedules.interleaved_one_f_one_b(ranks, m, 2), 2 * ranks),
    }  # fmt: skip
    for name, (orders, stages) in cases.items():
        lists, types = lists_of(orders, stages, m), given(orders, m)
        each = unit * ranks / stages
        costs = {"forward": each, "backward": 2 * each, "backward_input": each, "backward_weight": each}
        slept: list[float] = []

        def sleep(piece: str, costs: dict[str, float] = costs, slept: list[float] = slept) -> None:
            begin = time.perf_counter()
            time.sleep(costs[piece])
            slept.append(time.perf_counter() - begin)

        steps = []
        for _ in range(2):
            slept.clear()
            begin = time.perf_counter()
            run_on_threads(lists, [functions(stages, sleep)] * ranks, values(types))
            seconds = time.perf_counter() - begin
            steps.append((seconds, 1 - sum(slept) / ranks / seconds))
        seconds, idle = min(steps)
        form = simulate(lists, Costs(costs)).seconds
        found.append({
            "schedule": name, "ranks": ranks, "idle": round(idle, 4), "closed_form": round(1 - 3 * unit * m / form, 4),
            "slower": round(seconds / form, 4),
        })  # fmt: skip
    return found


def hidden_transfers(unit: float, layers: int = 16) -> float:
    """A backward pass of layers that sleep, each with a sum of gradients that takes half as long on the modelled link:
    seconds of the step by those of the computation."""
    from argosy_autoparallel.schedule import InstructionList, Port, Ref, Run, Signature, Start, Wait, run_on_threads
    from argosy_hwadapt.links import LinkModel, ModelledCommunicator
    from argosy_pir.types import TensorType

    type = TensorType([500], "float64")
    link = LinkModel.single_level(0.0, 500 * 8 / (unit / 2))
    signature = {("backward", None): Signature((), (Port("g", type),))}
    gradients = [(Ref("g", (0, i)), Ref("sum", (i,))) for i in range(layers)]
    list = [
        step
        for i, (g, total) in enumerate(gradients)
        for step in (Run("backward", 0, i), Start("all_reduce", g, total))
    ]
    one = InstructionList((*list, *(Wait(total) for _, total in gradients)), signature)

    def backward() -> Any:
        time.sleep(unit)
        return np.ones(500)

    begin = time.perf_counter()
    wrap = lambda communicator: ModelledCommunicator(communicator, link)  # noqa: E731
    run_on_threads([one] * 2, [{("backward", None): backward}] * 2, [{}, {}], wrap)
    return (time.perf_counter() - begin) / (layers * unit)


def train(steps: int, target: Path, apart: bool) -> None:
    """One rank: median seconds of a step of all stages there are, or with ``apart`` of its own training of the whole
    model; rank 0 writes them to ``target``."""
    import argosy as paddle
    import argosy.distributed as dist
    from argosy.models import GPT, GPTConfig

    class Decoder(GPT):
        def forward(self, ids: Any) -> Any:
            return super().forward(ids)

    def loss_of(logits: Any, labels: Any) -> Any:
        return paddle.nn.functional.cross_entropy(logits.reshape([-1, VOCABULARY]), labels.reshape([-1]))

    dist.init_parallel_env()
    paddle.seed(0)
    ranks = 1 if apart else dist.get_world_size()
    model = Decoder(GPTConfig(VOCABULARY, TOKENS, WIDTH, LAYERS, HEADS))
    optimizer: Any = paddle.optimizer.AdamW(3e-4, parameters=model.parameters())
    settings = {"gradient_merge": {"enable": ranks == 1, "k_steps": MICROBATCHES}}
    settings["pipeline"] = {"enable": ranks > 1, "schedule_mode": "1F1B", "accumulate_steps": MICROBATCHES}
    if ranks > 1:
        mesh = dist.ProcessMesh([*range(ranks)], ["pp"])
        model, optimizer = dist.parallelize(model, optimizer, mesh, {"pp_config": {"split_spec": "blocks"}})
    step = dist.to_static(model, None, loss_of, optimizer, dist.Strategy(settings))
    ids = np.random.default_rng(0).integers(0, VOCABULARY, (2, BATCH, TOKENS))
    rows = [[paddle.to_tensor(part) for part in np.split(x, 1 if ranks > 1 else MICROBATCHES)] for x in ids]
    seconds, losses = [], []
    for _ in range(steps + 2):
        dist.barrier()
        begin = time.perf_counter()
        losses.append(float(np.mean([float(step(x, y)) for x, y in zip(*rows, strict=True)])))
        seconds.append(time.perf_counter() - begin)
    made = {"step_ms": round(statistics.median(seconds[2:]) * 1e3, 3), "losses": losses[:3]}
    if ranks > 1:
        made |= time_pieces(step, [x for x, *_ in rows], steps)
    if dist.get_rank() == 0:
        target.write_text(json.dumps(made))


def time_pieces(step: Any, batch: list[Any], steps: int) -> dict[str, Any]:
    """Median milliseconds of each stage's pieces while the others run theirs, and of a step whose pieces take that long
    and whose messages take no time: what the schedule and the cut leave."""
    import argosy.distributed as dist
    from argosy_autoparallel.schedule import Costs, simulate

    (of_step,) = step._pipeline._steps.values()
    taken: dict[tuple[str, int], list[float]] = {}

    def timed(key: Any, piece: Any) -> Any:
        def run(*values: Any) -> Any:
            begin = time.perf_counter()
            made = piece(*values)
            taken.setdefault(key, []).append(time.perf_counter() - begin)
            return made

        return run

    of_step.functions = {key: timed(key, piece) for key, piece in of_step.functions.items()}
    for _ in range(steps):
        step(*batch)
    everyone: list[Any] = []
    dist.all_gather_object(everyone, {key: statistics.median(each) for key, each in taken.items()})
    costs = {key: seconds for mine in everyone for key, seconds in mine.items() if key[1] is not None}
    form = simulate(of_step.lists, Costs({**costs, "report": 0.0, "update": 0.0})).seconds
    pieces = {f"{name}[{stage}]": round(seconds * 1e3, 3) for (name, stage), seconds in sorted(costs.items())}
    return {"pieces_ms": pieces, "simulated_ms": round(form * 1e3, 3)}


def launch(ranks: int, apart: bool, steps: int, folder: Path) -> dict[str, Any]:
    """Run ``train`` on ``ranks`` ranks with one thread each."""
    target = folder / f"pipeline-{ranks}.json"
    threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARGOSY_NUM_THREADS")}
    options = ["--nproc_per_node", str(ranks), "--log_dir", str(folder / "log")]
    command = [sys.executable, "-m", "argosy.distributed.launch", *options, str(HERE)]
    command += ["--figures", str(target), "--steps", str(steps), *(["--apart"] if apart else [])]
    subprocess.run(command, check=True, env={**os.environ, **threads})
    found: dict[str, Any] = json.loads(target.read_text())
    return {"workload": "distributed_pipeline", "framework": "argosy", "ranks": ranks, "apart": apart, **found}


def measure_lists(unit: float, threads: list[int]) -> dict[str, Any]:
    """What lists cost, of pieces that do nothing or sleep."""
    lists: dict[str, Any] = {
        "instruction_us": round(instruction_microseconds(), 2), "hidden": round(hidden_transfers(unit), 4),
        "idle": [row for ranks in threads for row in idle_shares(ranks, unit)],
    }  # fmt: skip
    print(f"{lists['instruction_us']} us an instruction, {lists['hidden']} of the computation with transfers of half")
    for row in lists["idle"]:
        shares = f"idle {row['idle']:.2%}, closed form {row['closed_form']:.2%}"
        print(f"{row['schedule']:6} on {row['ranks']} threads: {shares}, step {row['slower']:.3f} of it")
    return lists


def measure_training(steps: int) -> list[dict[str, Any]]:
    """A process, two that train apart, and two stages: the speedup of stages and its share of the bound, which is that
    of processes apart but for the idle time of 1F1B."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [launch(*case, steps, Path(folder)) for case in ((1, False), (2, True), (2, False))]
    one, apart = (row["step_ms"] for row in rows[:2])
    busy = MICROBATCHES / (MICROBATCHES + 2 - 1)
    for row in rows:
        bound = row["ranks"] * one / apart * (1 if row["apart"] else busy) if row["ranks"] > 1 else 1.0
        row["speedup"] = round(bound if row["apart"] else one / row["step_ms"], 3)
        row["share"] = round(row["speedup"] / bound, 3)
        kind = "apart" if row["apart"] else "stages"
        print(
            f"{row['ranks']} {kind:6} {row['step_ms']:10.2f} ms a step, speedup {row['speedup']:5.2f}, "
            f"{row['share']:.0%} of the bound  {row['losses']}"
        )
        if "pieces_ms" in row:
            print(f"  {row['pieces_ms']} ms, with which 1F1B takes {row['simulated_ms']} ms")
    return rows


def main() -> None:
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--unit", type=float, default=0.1)
    parser.add_argument("--threads", type=int, nargs="*", default=[4, 8])
    parser.add_argument("--idle", action="store_true", help="pieces that sleep only: nothing is trained")
    parser.add_argument("--figures", type=Path, help="run as one rank and write the figures here")
    parser.add_argument("--apart", action="store_true", help="as one rank: train the whole model, whoever else runs")
    options = parser.parse_args()
    if options.figures:
        train(options.steps, options.figures, options.apart)
        return
    target = HERE.parent / "results" / "distributed_pipeline.json"
    found: dict[str, Any] = json.loads(target.read_text()) if target.exists() else {}
    if not options.idle:
        found["figures"], found["limits"] = measure_training(options.steps), shared_limits(2)
        print(f"limits of 2 processes of this machine: {found['limits']}")
    found["lists"] = measure_lists(options.unit, options.threads)
    made = {"command": " ".join(["python", *sys.argv]), "commit": commit(), "machine": machine()}
    target.write_text(json.dumps({**found, **made}, indent=1) + "\n")


if __name__ == "__main__":
    main()
