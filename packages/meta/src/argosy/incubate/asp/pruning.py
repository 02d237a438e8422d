"""Layers that are pruned, and optimizers that keep them so."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from argosy.incubate.asp.masks import CheckMethod, MaskAlgo, check_sparsity, create_mask
from argosy.nn.layer import Layer
from argosy.optimizer.optimizer import Optimizer
from argosy.static.program import Program, default_main_program
from argosy_autograd.modes import no_grad
from argosy_phi_ops.eager.dispatch import write
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "OptimizerWithSparsityGuarantee", "add_supported_layer", "decorate", "prune_model", "reset_excluded_layers",
    "set_excluded_layers",
]  # fmt: skip

Array = np.ndarray[Any, Any]
Pruning = Callable[[Array, int, int, MaskAlgo, str], tuple[Array, Array]]

_SUFFIX = "asp_mask"
_ALGORITHMS = {algorithm.value.removeprefix("get_"): algorithm for algorithm in MaskAlgo}


def _default_pruning(weight: Array, m: int, n: int, algorithm: MaskAlgo, name: str) -> tuple[Array, Array]:
    """(weight * mask, mask) with ``n`` zeros in every ``m`` inputs; as it is where there are fewer than ``m``."""
    if (weight.ndim == 2 and weight.shape[0] < m) or (weight.ndim == 4 and weight.shape[1] < m):
        warnings.warn(f"{name} of shape {list(weight.shape)} is not pruned: it has fewer than {m} inputs", stacklevel=4)
        return weight.copy(), np.ones_like(weight)
    mask = create_mask(weight.T, algorithm, n, m).T
    if not check_sparsity((weight * mask).T, CheckMethod.get_checking_method(algorithm), n, m):
        raise ValueError(f"prune_model(): {name} cannot have {n} zeros in every {m} by {algorithm.value}")
    return weight * mask, mask


_supported: dict[str, Pruning] = dict.fromkeys(("fc", "linear", "conv2d"), _default_pruning)
_excluded: WeakKeyDictionary[Program, list[str]] = WeakKeyDictionary()
_decorated: WeakSet[OptimizerWithSparsityGuarantee] = WeakSet()


def add_supported_layer(layer: Layer | type[Layer] | str, pruning_func: Pruning | None = None) -> None:
    """Prune the weights of layers of this class, or of this name, too.

    pruning_func: takes a weight (numpy), m, n, the :class:`MaskAlgo` and the weight's name, and gives the pruned weight
    and its mask; by default that of linear layers. Raises TypeError for what is no layer.
    """
    kind = type(layer) if isinstance(layer, Layer) else layer
    if isinstance(kind, type) and issubclass(kind, Layer):
        kind = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", kind.__name__).lower()
    if not isinstance(kind, str):
        raise TypeError(f"add_supported_layer(): argument 'layer' should be a Layer or a name, got {layer!r:.60}")
    _supported[kind] = pruning_func or _default_pruning


def set_excluded_layers(param_names: Sequence[str], main_program: Program | None = None) -> None:
    """Do not prune parameters whose names contain one of these (such as ``layer.full_name()``), of the program or, by
    default, of layers that are trained without one."""
    _excluded.setdefault(main_program or default_main_program(), []).extend(param_names)


def reset_excluded_layers(main_program: Program | None = None) -> None:
    """Forget what :func:`set_excluded_layers` was told for the program, or for all."""
    if main_program is None:
        _excluded.clear()
    else:
        _excluded.pop(main_program, None)


def decorate(optimizer: Optimizer) -> OptimizerWithSparsityGuarantee:
    """The optimizer, which from now on multiplies weights by the masks of :func:`prune_model` after each step."""
    return OptimizerWithSparsityGuarantee(optimizer)


def prune_model(
    model: Layer | Program, n: int = 2, m: int = 4, mask_algo: str = "mask_1d", with_mask: bool = True
) -> dict[str, Array]:
    """Put ``n`` zeros into every ``m`` inputs of the weights of linear layers, convolutions and what
    :func:`add_supported_layer` named; masks by the parameters' names.

    mask_algo: "mask_1d" (the smallest of neighbours), "mask_2d_greedy" or "mask_2d_best" (also across outputs);
    with_mask: keep the masks in the decorated optimizer of these parameters, which must be there. Raises TypeError for
    other models, ValueError for other algorithms, RuntimeError without the optimizer.
    """
    if mask_algo not in _ALGORITHMS:
        raise ValueError(f"prune_model(): argument 'mask_algo' should be one of {[*_ALGORITHMS]}, got {mask_algo!r}")
    if not isinstance(model, (Layer, Program)):
        raise TypeError(f"prune_model(): argument 'model' should be a Layer or Program, got {type(model).__name__}")
    parameters = model.parameters() if isinstance(model, Layer) else model.all_parameters()
    program = model if isinstance(model, Program) else default_main_program()
    masks: dict[str, Array] = {}
    for parameter in parameters:
        pruning = _pruning_of(parameter.name, program)
        if pruning is None:
            continue
        holders = [optimizer.masks for optimizer in _decorated if optimizer.keeps(parameter)] if with_mask else []
        if with_mask and not holders:
            raise RuntimeError(f"prune_model(): decorate() the optimizer of {parameter.name} first, or with_mask=False")
        weight = to_numpy(parameter)
        pruned, mask = pruning(weight, m, n, _ALGORITHMS[mask_algo], parameter.name)
        parameter.set_value(pruned.astype(weight.dtype))
        for held in holders:
            held[parameter.name].set_value(mask.astype(weight.dtype))
        masks[parameter.name] = mask
    return masks


def _pruning_of(name: str, program: Program) -> Pruning | None:
    """How the parameter is pruned: ``linear_0.w_0`` by its own name, its layer's, or its layer's kind."""
    if any(part in name for part in _excluded.get(program, ())):
        return None
    layer, _, role = name.partition(".")
    names = [name, layer, layer.rpartition("_")[0]] if role.startswith("w_") else [name]
    return next((_supported[known] for known in names if known in _supported), None)


class OptimizerWithSparsityGuarantee:
    """An optimizer whose weights keep the zeros of :func:`prune_model`."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer
        self.masks: dict[str, Tensor] = {}
        self._masked: dict[int, Tensor] = {}
        self._take(optimizer._parameter_list)
        _decorated.add(self)

    def __getattr__(self, item: str) -> Any:
        if item == "_optimizer":
            raise AttributeError(item)  # before __init__, as when it is copied
        return getattr(self._optimizer, item)

    def keeps(self, parameter: Tensor) -> bool:
        """Whether it has a mask for this parameter."""
        return self._masked.get(id(parameter)) is parameter

    def step(self) -> None:
        """The optimizer's step, and the masks."""
        self._optimizer.step()
        self._apply()

    def minimize(
        self, loss: Tensor, startup_program: object = None, parameter_list: Any = None, no_grad_set: Any = None
    ) -> Any:
        """The optimizer's :meth:`Optimizer.minimize`, and the masks; in a static program both are recorded."""
        found = self._optimizer.minimize(loss, startup_program, parameter_list, no_grad_set)
        self._take([parameter for parameter, _ in found[1]])
        self._apply()
        return found

    def state_dict(self) -> dict[str, Any]:
        """The optimizer's states, and the masks as ``<parameter>.asp_mask``."""
        return {**self._optimizer.state_dict(), **{f"{name}.{_SUFFIX}": mask for name, mask in self.masks.items()}}

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Put back what :meth:`state_dict` gave. Raises ValueError where a mask is missing."""
        for name in self.masks:
            if f"{name}.{_SUFFIX}" not in state_dict:
                raise ValueError(f"the state dict holds no {name}.{_SUFFIX}")
        for name, mask in self.masks.items():
            mask.set_value(state_dict[f"{name}.{_SUFFIX}"])
        kept = {key: value for key, value in state_dict.items() if not key.endswith(f".{_SUFFIX}")}
        self._optimizer.set_state_dict(kept)

    set_dict = load_state_dict = set_state_dict

    def _take(self, parameters: Iterable[Tensor]) -> None:
        for parameter in parameters:
            if not self.keeps(parameter) and _pruning_of(parameter.name, default_main_program()) is not None:
                self._masked[id(parameter)] = parameter
                self.masks[parameter.name] = Tensor(np.ones(parameter.shape, parameter.dtype.numpy))

    def _apply(self) -> None:
        with no_grad():
            for parameter in self._masked.values():
                product: Any = parameter * self.masks[parameter.name]
                write(parameter, product)
