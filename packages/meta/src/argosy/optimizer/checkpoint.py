"""The state dict of an optimizer."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import numpy as np

from argosy.argument_checks import validate_call
from argosy.optimizer.lr import LambdaDecay
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.tensor import Tensor

__all__ = ["GENERATOR", "collect", "fill", "require_state", "restore", "structured_names"]

GENERATOR = "generator"
"""Where ``Model.save`` notes the random generator's state, as plain integers."""
_OTHERS = ("LR_Scheduler", "master_weights", GENERATOR)


def collect(optimizer: Any) -> dict[str, Any]:
    """Accumulators by key, then master weights and the schedule's state."""
    found: dict[str, Any] = {}
    for name, held in optimizer._accumulators.items():
        for parameter, state in held.items():
            found[f"{parameter}_{name}_0"] = state
    found.update(optimizer._pending)
    if optimizer._master_weights:
        found["master_weights"] = dict(optimizer._master_weights)
    if optimizer._scheduler is not None:
        found["LR_Scheduler"] = optimizer._scheduler.state_dict()
    return found


def structured_names(optimizer: Any, model_state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The states under the names that the model's state dict has: ``<structured name>.<accumulator>_0`` and ``.w_0``.

    Raises ValueError for a parameter that ``model_state`` lacks.
    """
    names: dict[str, str] = {}
    for name, tensor in sorted(model_state.items()):
        names.setdefault(str(tensor.name), name)
    held = [
        (parameter, f"{kind}_0", state)
        for kind, of in optimizer._accumulators.items()
        for parameter, state in of.items()
    ]
    held += [(parameter, "w_0", weight) for parameter, weight in optimizer._master_weights.items()]
    missing = sorted({parameter for parameter, _, _ in held if parameter not in names})
    if missing:
        raise ValueError(f"sharded_state_dict: the model's state dict lacks parameters {missing[:3]}")
    return {f"{names[parameter]}.{kind}": state for parameter, kind, state in held}


@validate_call
def restore(optimizer: Any, state_dict: Mapping[str, Any]) -> None:
    """Put back accumulators (those not made yet wait), master weights and the schedule."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"set_state_dict(): argument 'state_dict' must be a dictionary, got {state_dict!r:.60}")
    given = {k: v for k, v in state_dict.items() if k not in _OTHERS}
    values, restored = _own_entries(optimizer, given)
    made = [(p, f"{p}_{name}_0", x) for name, of in optimizer._accumulators.items() for p, x in of.items()]
    for parameter, key, _ in made:
        if parameter in restored:
            require_state(values, key, optimizer)
    _restore_schedule(optimizer, state_dict.get("LR_Scheduler"), bool(values))
    for parameter, value in dict(state_dict.get("master_weights", {})).items():
        held = optimizer._master_weights.get(parameter)
        if held is None:
            values[f"{parameter}_fp32_master_0"] = value
        else:
            fill(held, value, held.name)
    for _, key, state in made:
        if key in values:
            fill(state, values.pop(key), key)
    optimizer._pending, optimizer._restored = values, restored


def _restore_schedule(optimizer: Any, schedule: Any, states: bool) -> None:
    """Raises ValueError where there are states, but none of the optimizer's schedule."""
    scheduler = optimizer._scheduler
    if scheduler is None:
        return
    if schedule is not None:
        scheduler.set_state_dict(schedule)
    elif states and not isinstance(scheduler, LambdaDecay):
        raise ValueError(
            f"set_state_dict(): the state dict lacks 'LR_Scheduler', the state of this optimizer's "
            f"{type(scheduler).__name__}: it was saved with a constant learning rate"
        )


def require_state(values: Mapping[str, Any], key: str, optimizer: Any) -> None:
    """Raises ValueError where ``values``, which hold other states of a parameter, lack this one."""
    if key not in values:
        raise ValueError(
            f"the state dict lacks {key}, which {type(optimizer).__name__} needs: it was saved by another optimizer, "
            "or with other settings"
        )


def _own_entries(optimizer: Any, values: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """The entries of the optimizer's parameters, and the names of those that have some. Raises ValueError where there
    are entries of others while some of its own have none; changes nothing."""
    names = {p.name: p.stop_gradient for p in optimizer._parameter_list}
    owned = {key: owner for key in values if (owner := owner_of(key, names)) is not None}
    restored = set(owned.values())
    unknown = [key for key in values if key not in owned]
    if unknown and any(name not in restored for name, fixed in names.items() if not fixed):
        raise ValueError(
            f"the state dict holds {len(unknown)} entries of parameters that this {type(optimizer).__name__} does not "
            f"have, such as {unknown[:3]}; it has {len(names)} parameters, such as {list(names)[:3]}. Names count the "
            "layers made in this process: build the model in the same order as when it was saved"
        )
    return {key: values[key] for key in owned}, restored


def owner_of(key: str, names: Container[str]) -> str | None:
    """The longest of ``names`` that the key of a state begins with: ``<name>_<accumulator>_0``."""
    end = key.rfind("_")
    while end > 0 and key[:end] not in names:
        end = key.rfind("_", 0, end)
    return key[:end] if end > 0 else None


def fill(state: Tensor, value: Any, key: str) -> None:
    """Overwrite a state tensor. Raises ValueError naming the key when the shape is another."""
    if value is state:
        return
    source = to_numpy(value) if isinstance(value, Tensor) else np.asarray(value)
    if list(source.shape) != list(state.shape):
        raise ValueError(f"optimizer state {key} has shape {list(source.shape)}, expected {list(state.shape)}")
    state.payload.fill_from(source)
    state.payload.bump_version()
