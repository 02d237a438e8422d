"""State dicts of layers: what is in them, and how values get back."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from argosy_autograd.modes import no_grad
from argosy_phi_ops.eager.dispatch import suspend_layers, write
from argosy_tensorcore.dtype import DType
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor
from argosy_tensorcore.uninitialized_payload import give_memory

__all__ = ["check", "collect", "convert", "copy_into", "gather", "misfit", "restore", "take_over"]


def collect(
    layer: Any,
    destination: dict[str, Tensor] | None,
    deep: bool,
    prefix: str,
    use_hook: bool,
    keep_vars: bool,
    every_buffer: bool = False,
) -> dict[str, Tensor]:
    """Parameters and buffers by dotted name: the persistable buffers, or every one."""
    found: dict[str, Tensor] = OrderedDict() if destination is None else destination
    left_out = () if every_buffer else layer._non_persistable_buffer_names_set
    for kind in ("_parameters", "_buffers"):
        for name, tensor in layer.__dict__[kind].items():
            if tensor is not None and not (kind == "_buffers" and name in left_out):
                found[prefix + name] = tensor if keep_vars else tensor.detach()
    if deep:
        for name, child in layer._sub_layers.items():
            if child is not None:
                child._state_dict_impl(found, True, f"{prefix}{name}.", every_buffer, use_hook, keep_vars)
    if use_hook:
        for hook, _ in layer._state_dict_hooks.values():
            found = hook(found) or found
    return found


def _check_mapping(values: object) -> None:
    if not isinstance(values, Mapping):
        raise TypeError(f"set_state_dict(): argument 'state_dict' must be a dictionary, got {values!r:.80}")


def restore(
    layer: Any, values: Mapping[str, Any], structured: bool, put: Callable[[Tensor, Any], None] | None = None
) -> tuple[list[str], list[str]]:
    """``put`` (by default :func:`copy_into`) what fits; returns (missing, unexpected) and warns about each."""
    _check_mapping(values)
    missing, unexpected = [], [name for name in values if name != "StructuredToParameterName@@"]
    for name, tensor in layer._state_dict_impl(use_hook=False).items():
        key = name if structured else tensor.name
        value = values.get(key)
        wrong = misfit(key, tensor, value)
        if wrong is not None:
            missing.append(key)
            warnings.warn(f"Skip loading for {key}. {wrong}", stacklevel=3)
        else:
            unexpected.remove(key)
            (put or copy_into)(tensor, value)
    return missing, unexpected


def misfit(key: str, tensor: Tensor, value: Any) -> str | None:
    """Why ``value``, ``key`` of a state dict, is nothing for ``tensor``, in Paddle's words; None where it is."""
    if value is None:
        return f"{key} is not found in the provided dict."
    shape = list(value.shape if hasattr(value, "shape") else np.shape(value))
    if shape != list(tensor.shape):
        return f"{key} receives a shape {shape}, but the expected shape is {list(tensor.shape)}."
    return None


def check(layer: Any, values: Mapping[str, Any]) -> None:
    """Raises RuntimeError listing every missing, unexpected and misshaped name; changes nothing."""
    _check_mapping(values)
    own = layer._state_dict_impl(use_hook=False)
    wrong = [f"missing {name} {list(own[name].shape)}" for name in own if name not in values]
    wrong += [f"unexpected {name}" for name in values if name not in own and name != "StructuredToParameterName@@"]
    wrong += [
        f"{name} has shape {list(values[name].shape)}, expected {list(tensor.shape)}"
        for name, tensor in own.items()
        if name in values and list(values[name].shape) != list(tensor.shape)
    ]
    if wrong:
        raise RuntimeError(f"the state dict does not fit {type(layer).__name__}: " + "; ".join(wrong))


def copy_into(tensor: Tensor, value: Any) -> None:
    """Overwrite the data in place with a tensor's or array's of the same shape, cast to the tensor's dtype."""
    give_memory(tensor)
    if type(tensor.payload) is not StridedArray and type(value) is Tensor and type(value.payload) is not StridedArray:
        with no_grad():  # from layout to layout: nobody needs the whole
            write(tensor, value.astype(tensor.dtype))
        return
    source = to_numpy(value) if type(value) is Tensor else np.asarray(value)
    if source.dtype == np.uint16 and tensor.dtype.name == "bfloat16":  # how bfloat16 travels as a numpy array
        source = source.view(tensor.dtype.numpy)
    tensor.payload.fill_from(source)
    tensor.payload.bump_version()


def take_over(tensor: Tensor, value: Any) -> None:
    """Give the tensor the storage of ``value``, a tensor or array of the same shape, and with it its dtype."""
    tensor.payload = value.payload if type(value) is Tensor else StridedArray.from_array(np.array(value))


def convert(tensor: Tensor, dtype: DType) -> None:
    """Give ``tensor`` data of another dtype, laid out as before; of complex numbers the real part for a real one."""
    if tensor.dtype is dtype:
        return
    if type(tensor.payload) is StridedArray:
        array = to_numpy(tensor)
        tensor.payload = StridedArray.from_array((array if dtype.kind == "c" else array.real).astype(dtype.numpy))
    else:
        with suspend_layers():
            tensor.payload = tensor.detach().astype(dtype).payload


def gather(tensor: Tensor) -> Tensor:
    """The whole of a distributed tensor, on this rank; every rank calls."""
    from argosy_autoparallel.api import unshard_dtensor

    return unshard_dtensor(tensor)
