"""The conformance kit's levels that need the whole framework: ``python -m argosy.device.testing DEVICE [--level 3]``.

Level 3 runs the samples of all operators on the device, beside the CPU, and the cases of nodes that the library
``onnx`` brings where it is installed; what has no code there, and what is excluded, is counted by reason.
Level 4 trains models on it, eager and captured, in float16 where it computes with that, and from checkpoints that go to
the CPU and back, and generates with a Llama: nothing may fall back, losses are the CPU's within 1e-4 (of float16 within
1e-2), and greedy tokens are the same. Levels 0 to 2, 5 and 6 are ``python -m argosy_hwadapt.testing``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

import argosy as paddle
from argosy.api import fetch
from argosy.device.performance import measure, report_text
from argosy_hwadapt import UnsupportedOperation
from argosy_phi_ops.declare.index import scan
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.settings import FALLBACK
from argosy_tensorcore.place import as_place
from argosy_tensorcore.tensor import Tensor

__all__ = ["Outcome", "check_models", "check_onnx_cases", "check_operators", "main"]

#: What results may differ by from the CPU's, as shares of the largest number.
_TOLERANCE, _HALF_TOLERANCE = 1e-4, 1e-2
_STEPS, _TOKENS = 3, 16
_NOT_COUNTED = "not counted: "
#: Operators whose vectors may be multiplied by any number of modulus one.
_UP_TO_PHASE = frozenset({"svd", "eigh"})


class Outcome(NamedTuple):
    """What came of one check. ``status`` is passed, failed, or, for the reason in ``detail``, fallback: there is no
    code, or excluded: it is no part of the set (``detail`` begins with "not counted"), or known not to pass on any
    device."""

    level: int
    name: str
    status: str
    detail: str


def check_operators(place: str, names: Sequence[str] | None = None) -> Iterator[Outcome]:
    """The samples of operators (all by default) on ``place`` and on the CPU."""
    for name in sorted(scan()) if names is None else names:
        op = get_operator(name)
        if op.opaque or op.sampler is None:
            continue
        for sample in list(op.sampler(np.random.default_rng(0)))[:2]:
            yield _outcome(3, name, lambda: _compare_sample(op, sample, place))  # noqa: B023 (called at once)


def _compare_sample(op: Any, sample: Any, place: str) -> str:
    results = []
    for where in ("cpu", place):
        paddle.seed(0)
        with paddle.device.device_guard(where):
            arguments = [_place_argument(x, where) for x in sample.args]
            results.append(_arrays(op(*arguments, **{k: _place_argument(v, where) for k, v in sample.kwargs.items()})))
    return _differences(*([list(map(np.abs, r)) for r in results] if op.name in _UP_TO_PHASE else results))


def _place_argument(value: Any, place: str) -> Any:
    """An argument with its arrays as tensors at a place."""
    if isinstance(value, np.ndarray):
        return paddle.to_tensor(value, place=place)
    return [_place_argument(item, place) for item in value] if isinstance(value, list) else value


def _arrays(value: Any) -> list[Any]:
    if isinstance(value, Tensor):
        return [value.numpy()]
    return [array for item in value for array in _arrays(item)] if isinstance(value, (list, tuple)) else []


def _differences(expected: Sequence[Any], found: Sequence[Any]) -> str:
    """How two lists of arrays differ; empty where they do not."""
    for i, (x, y) in enumerate(zip(expected, found, strict=True)):
        if x.shape != y.shape or x.dtype != y.dtype:
            return f"result {i} is {y.dtype} {list(y.shape)}, not {x.dtype} {list(x.shape)}"
        finite = x[np.isfinite(x)] if x.dtype.kind in "fc" else x
        scale = float(np.abs(finite.astype(np.float64)).max(initial=1.0)) if x.dtype.kind == "f" else 0.0
        if not np.allclose(x, y, rtol=_TOLERANCE, atol=_TOLERANCE * scale, equal_nan=True):
            return f"result {i} differs from the CPU's"
    return ""


def check_onnx_cases(place: str) -> Iterator[Outcome]:
    """The cases of nodes of the library ``onnx`` on ``place``: those of plain tensors are the set."""
    if find_spec("onnx") is None:
        return
    cases = fetch("argosy_infer.onnx.testing:cases", "the conformance kit")
    for case in cases():
        excluded = f"{_NOT_COUNTED}{case.kind}" if case.kind else case.exclusion
        if excluded:
            yield Outcome(3, f"onnx {case.name}", "excluded", excluded)
        else:
            yield _outcome(3, f"onnx {case.name}", lambda: case.difference(device=place))  # noqa: B023


def _share_of_cases(outcomes: Sequence[Outcome]) -> list[str]:
    """What came of the set of cases: how many of plain tensors pass, and the others by reason."""
    found = [o for o in outcomes if o.name.startswith("onnx ")]
    if not found:
        return ["ONNX node set: not run (the library onnx is not installed, or brings no cases)"]
    counted = [o for o in found if not o.detail.startswith(_NOT_COUNTED)]
    passed = sum(o.status == "passed" for o in counted)
    lines = [f"ONNX node set: {passed} of {len(counted)} cases of plain tensors pass ({passed / len(counted):.1%})"]
    reasons = Counter((o.status, o.detail) for o in found if o.status in ("excluded", "fallback"))
    return lines + [f"  {count:4} {status}: {detail}" for (status, detail), count in reasons.most_common()]


def check_models(place: str) -> Iterator[Outcome]:
    """Training steps of three models, eager and captured, and greedy tokens."""
    for name, make in _MODELS.items():
        for captured in (False, True):
            way = "captured" if captured else "eager"
            yield _outcome(4, f"{name}, {way}", lambda: _compare_training(make, captured, place))  # noqa: B023
    yield _outcome(4, "MLP, from checkpoints", lambda: _compare_checkpoints(place))
    if "float16" in as_place(place).device().info.dtypes:
        yield _outcome(4, "MLP, autocast to float16", lambda: _compare_autocast(place))
    yield _outcome(4, f"Llama, {_TOKENS} greedy tokens", lambda: _compare_tokens(place))


def _mlp() -> tuple[Any, Any, Any]:
    nn = paddle.nn
    return (
        nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)),
        _numbers(12, 8),
        _classes(4, 12),
    )


def _cnn() -> tuple[Any, Any, Any]:
    nn = paddle.nn
    body = [nn.Conv2D(2, 4, 3, padding=1), nn.BatchNorm2D(4), nn.ReLU(), nn.MaxPool2D(2), nn.Flatten()]
    return nn.Sequential(*body, nn.Linear(4 * 3 * 3, 4)), _numbers(5, 2, 7, 7), _classes(4, 5)


def _transformer() -> tuple[Any, Any, Any]:
    gpt, sizes = (fetch(f"argosy.models.gpt:{name}", "the conformance kit") for name in ("GPT", "GPTConfig"))
    tokens = _classes(61, 2, 13)
    config = sizes(vocabulary=61, positions=_TOKENS + 4, width=16, layers=1, heads=2)
    return gpt(config), tokens[:, :-1].copy(), tokens[:, 1:].copy()


def _llama() -> Any:
    """Two blocks with rotary positions, a head of keys for two of queries, gated feed-forward layers and RMSNorm."""
    configure, file, model = (
        fetch(f"argosy.models.{name}", "the conformance kit")
        for name in ("families.llama:configure", "configuration:ConfigFile", "decoder:CausalLM")
    )
    sizes = {"vocab_size": 61, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "rms_norm_eps": 1e-6, "max_position_embeddings": 64}
    return model(configure(file({"model_type": "llama", **sizes, **heads})))


_MODELS: dict[str, Callable[[], tuple[Any, Any, Any]]] = {"MLP": _mlp, "CNN": _cnn, "GPT": _transformer}


def _numbers(*shape: int) -> Any:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def _classes(count: int, *shape: int) -> Any:
    return np.random.default_rng(2).integers(0, count, shape)


def _compare_training(make: Callable[[], tuple[Any, Any, Any]], captured: bool, place: str) -> str:
    wanted, found = (_losses(make, captured, where) for where in ("cpu", place))
    return "" if np.allclose(found, wanted, rtol=0, atol=_TOLERANCE) else f"losses {found}, on the CPU {wanted}"


def _losses(make: Callable[[], tuple[Any, Any, Any]], captured: bool, place: str) -> list[float]:
    with paddle.device.device_guard(place):
        _, step = _make_step(make, place, captured)
        return [float(step()) for _ in range(_STEPS)]


def _make_step(
    make: Callable[[], tuple[Any, Any, Any]], place: str, captured: bool = False
) -> tuple[tuple[Any, Any], Callable[[], Any]]:
    """A network and its optimizer, and a function that trains them for a step and gives the loss."""
    paddle.seed(3)
    network, x, y = make()
    network = network.to(place)
    update = paddle.optimizer.AdamW(1e-2, parameters=network.parameters())

    def step(x: Any, y: Any) -> Any:
        found = network(x)
        loss = paddle.nn.functional.cross_entropy(found.reshape([-1, found.shape[-1]]), y.reshape([-1]))
        loss.backward()
        update.step()
        update.clear_grad()
        return loss

    run = paddle.jit.to_static(step, full_graph=True) if captured else step
    batch = paddle.to_tensor(x, place=place), paddle.to_tensor(y, place=place)
    return (network, update), lambda: run(*batch)


def _compare_checkpoints(place: str) -> str:
    """Steps here and there, with states of network and optimizer saved to a file in between."""
    found: list[float] = []
    with TemporaryDirectory() as folder:
        path = os.path.join(folder, "state.pdparams")
        for where in ("cpu", place, "cpu", place):
            with paddle.device.device_guard(where), paddle.utils.unique_name.guard():
                parts, step = _make_step(_mlp, where)
                for part, state in zip(parts, paddle.load(path) if found else (), strict=False):
                    part.set_state_dict(state)
                found.append(float(step()))
                paddle.save([part.state_dict() for part in parts], path)
    with paddle.device.device_guard("cpu"):
        _, step = _make_step(_mlp, "cpu")
        wanted = [float(step()) for _ in found]
    return "" if np.allclose(found, wanted, rtol=0, atol=_TOLERANCE) else f"losses {found}, on the CPU {wanted}"


def _compare_autocast(place: str) -> str:
    with paddle.amp.auto_cast(dtype="float16"):
        wanted, found = (_losses(_mlp, False, where) for where in ("cpu", place))
    return "" if np.allclose(found, wanted, rtol=0, atol=_HALF_TOLERANCE) else f"losses {found}, on the CPU {wanted}"


def _compare_tokens(place: str) -> str:
    found = [_greedy_tokens(where) for where in ("cpu", place)]
    return "" if found[0] == found[1] else f"tokens {found[1]}, on the CPU {found[0]}"


def _greedy_tokens(place: str) -> list[int]:
    with paddle.device.device_guard(place):
        paddle.seed(3)
        network = _llama().to(place)
        network.eval()
        tokens = np.zeros((1, _TOKENS + 1), np.int64)  # of one length: code is made once, and what follows is not seen
        for i in range(_TOKENS):
            logits = network(paddle.to_tensor(tokens, place=place))
            tokens[0, i + 1] = int(logits[0, i].argmax())
        return tokens[0].tolist()  # type: ignore[no-any-return]


def _outcome(level: int, name: str, compare: Callable[[], str]) -> Outcome:
    """Run a comparison, which says what differs, without falling back."""
    before = FALLBACK.read() if FALLBACK.is_set else None
    FALLBACK.write("error")
    try:
        difference = compare()
    except UnsupportedOperation as error:
        return Outcome(level, name, "fallback", str(error))
    except Exception as error:  # noqa: BLE001 - any error is a finding about the device, and is reported
        return Outcome(level, name, "failed", f"{type(error).__name__}: {error}")
    finally:
        FALLBACK.write(before)
    return Outcome(level, name, "failed" if difference else "passed", difference)


_LEVELS = {3: (check_operators, check_onnx_cases), 4: (check_models,)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the levels and print each outcome as it comes; 0 if nothing failed and no model fell back."""
    parser = argparse.ArgumentParser(prog="python -m argosy.device.testing", description=__doc__)
    parser.add_argument("device", help="an installed device, such as virtual or opencl")
    parser.add_argument("--level", type=int, choices=list(_LEVELS), help="3 operators, 4 models; both by default")
    parser.add_argument("--performance", action="store_true", help="only measure how fast it is, beside the CPU")
    parser.add_argument("--json", action="store_true", help="print the outcomes as JSON")
    options = parser.parse_args(arguments)
    if options.performance:
        sys.stdout.write(report_text(options.device, measure(options.device)))
        return 0
    levels = list(_LEVELS) if options.level is None else [options.level]
    outcomes = []
    checks = [check for level in levels for check in _LEVELS[level]]
    for outcome in (outcome for check in checks for outcome in check(options.device)):
        outcomes.append(outcome)
        if not options.json:
            sys.stdout.write(f"L{outcome.level} {outcome.status:8} {outcome.name}  {outcome.detail}".rstrip() + "\n")
            sys.stdout.flush()
    counts = Counter(o.status for o in outcomes)
    total = ", ".join(f"{counts[status]} {status}" for status in ("passed", "fallback", "excluded", "failed"))
    if 3 in levels:
        total = "\n".join([*_share_of_cases(outcomes), total])
    sys.stdout.write((json.dumps([o._asdict() for o in outcomes], indent=2) if options.json else total) + "\n")
    return int(any(o.status == "failed" or (o.level == 4 and o.status == "fallback") for o in outcomes))


if __name__ == "__main__":
    sys.exit(main())
