"""The state dict of an optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from argosy.checked import checked
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.tensor import Tensor

__all__ = ["collect", "fill", "restore", "structured"]


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


def structured(optimizer: Any, model_state: Mapping[str, Tensor]) -> dict[str, Tensor]:
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


@checked
def restore(optimizer: Any, state_dict: Mapping[str, Any]) -> None:
    """Put back accumulators (those not made yet wait), master weights and the schedule."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"set_state_dict(): argument 'state_dict' must be a dictionary, got {state_dict!r:.60}")
    values = {k: v for k, v in state_dict.items() if k not in ("LR_Scheduler", "master_weights")}
    _check_names(optimizer, values)
    schedule = state_dict.get("LR_Scheduler")
    if schedule is not None and optimizer._scheduler is not None:
        optimizer._scheduler.set_state_dict(schedule)
    for parameter, value in dict(state_dict.get("master_weights", {})).items():
        held = optimizer._master_weights.get(parameter)
        if held is None:
            values[f"{parameter}_fp32_master_0"] = value
        else:
            fill(held, value, held.name)
    for name, accumulators in optimizer._accumulators.items():
        for parameter, state in accumulators.items():
            key = f"{parameter}_{name}_0"
            if key in values:
                fill(state, values.pop(key), key)
    optimizer._pending = values


def _check_names(optimizer: Any, values: Mapping[str, Any]) -> None:
    """Raises ValueError when entries belong to none of the optimizer's parameters; changes nothing."""
    names = [p.name for p in optimizer._parameter_list]
    unknown = [key for key in values if not key.startswith(tuple(f"{name}_" for name in names))]
    if unknown:
        raise ValueError(
            f"the state dict holds {len(unknown)} entries of parameters that this {type(optimizer).__name__} does not "
            f"have, such as {unknown[:3]}; it has {len(names)} parameters, such as {names[:3]}. Names count the layers "
            "made in this process: build the model in the same order as when it was saved"
        )


def fill(state: Tensor, value: Any, key: str) -> None:
    """Overwrite a state tensor. Raises ValueError naming the key when the shape is another."""
    if value is state:
        return
    source = to_numpy(value) if isinstance(value, Tensor) else np.asarray(value)
    if list(source.shape) != list(state.shape):
        raise ValueError(f"optimizer state {key} has shape {list(source.shape)}, expected {list(state.shape)}")
    state.payload.fill_from(source)
    state.payload.bump_version()
