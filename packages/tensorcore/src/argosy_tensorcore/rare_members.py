"""Members of Tensor that few programs use: Paddle's looks at a tensor's internals.

``MEMBERS`` maps names to methods and properties. ``Tensor`` looks here when a name is first used, as it looks for
operators, so that programs that never ask load nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from argosy_tensorcore.conversion import bit_pattern, host_array
from argosy_tensorcore.place import as_place
from argosy_tensorcore.storage import Array, StridedArray
from argosy_tensorcore.uninitialized_payload import UninitializedPayload

if TYPE_CHECKING:
    from argosy_tensorcore.tensor import Tensor


def is_same_shape(tensor: Tensor, other: Tensor) -> bool:
    """True when both have the same shape; ``other`` may be of another class, a sparse tensor say."""
    return tuple(tensor.payload.shape) == tuple(other.shape)


def get_device(self: Tensor) -> int:
    """Index of the device that holds the data; -1 on the host."""
    return -1 if self.place.is_cpu_place() else self.place.index


def gradient(self: Tensor) -> Array | None:
    """The accumulated gradient as an ndarray, or None."""
    return None if self.grad is None else self.grad.numpy()


def shares_buffer(tensor: Tensor, other: Tensor) -> bool:
    """True when both are views of one storage."""
    mine, theirs = tensor.payload, other.payload
    return type(mine) is StridedArray and type(theirs) is StridedArray and mine.shares_storage(theirs)


def share_buffer(tensor: Tensor, other: Tensor) -> None:
    """Make other show tensor's data from now on."""
    _ = tensor.payload.storage  # so that both count in-place writes together
    other.payload = tensor.payload


def md5sum(tensor: Tensor) -> str:
    """Digest of the elements' bytes in row-major order, for comparing tensors across processes."""
    from hashlib import md5

    return md5(bit_pattern(host_array(tensor, "_md5sum()")).tobytes(), usedforsecurity=False).hexdigest()


def contiguous(tensor: Tensor) -> Any:
    """The tensor itself where its elements lie in row-major order, else a copy that does, differentiable."""
    return tensor if tensor.is_contiguous() else tensor.clone()


def rows(tensor: Tensor, begin_idx: int, end_idx: int) -> Tensor:
    """Rows ``begin_idx`` to ``end_idx``, a view outside of the graph. Raises IndexError for rows that are not there."""
    payload = tensor.payload
    if not payload.shape or not 0 <= begin_idx < end_idx <= payload.shape[0]:
        raise IndexError(f"_slice: rows {begin_idx} to {end_idx} of a tensor of shape {list(payload.shape)}")
    return type(tensor)._wrap(payload.share(payload.ndarray[begin_idx:end_idx]))


def copy_to(tensor: Tensor, place: Any, blocking: bool = True) -> Tensor:
    """A copy at ``place``, outside of the graph. Raises DeviceNotFound for a place that is not there."""
    wanted, array = as_place(place), host_array(tensor, "_copy_to()")
    device = None if wanted.is_cpu_place() else wanted.device()
    copy = type(tensor)._wrap(StridedArray.from_array(array if device else array.copy(), device))
    copy.persistable = tensor.persistable
    return copy


def clear_data(tensor: Tensor) -> None:
    """Give the memory back: shape and dtype stay, values are gone until some are set."""
    tensor.payload = UninitializedPayload(tensor.payload.shape, tensor.payload.dtype)


def set_grad(tensor: Tensor, grad: Tensor | None) -> None:
    """Assign the accumulated gradient."""
    tensor.grad = grad


def zero_grad(tensor: Tensor) -> None:
    """Overwrite the accumulated gradient by zeros, where there is one."""
    if tensor.grad is not None:
        tensor.grad.payload.fill_from(0)
        tensor.grad.payload.bump_version()


def share_payload(tensor: Tensor, other: Tensor) -> None:
    """Make the tensor show the data of ``other``, of whatever shape and dtype, from now on."""
    _ = other.payload.storage
    tensor.payload = other.payload


_GRADIENT = object()


def main_gradient(tensor: Tensor) -> Any:
    """What ``main_grad`` was set to; the accumulated gradient after :func:`link_main_gradient`."""
    kept = tensor.__dict__.get("main_grad", AttributeError)
    if kept is AttributeError:
        raise AttributeError("main_grad")
    return tensor.grad if kept is _GRADIENT else kept


def set_main_gradient(tensor: Tensor, value: Any) -> None:
    """Assign ``main_grad``: the accumulated gradient after :func:`link_main_gradient`, else a member like any other."""
    if tensor.__dict__.get("main_grad") is _GRADIENT:
        tensor.grad = value
    else:
        tensor.__dict__["main_grad"] = value


def link_main_gradient(tensor: Tensor) -> None:
    """Let ``main_grad`` be another name of the accumulated gradient, which is of whatever dtype hooks give."""
    tensor.__dict__["main_grad"] = _GRADIENT


MEMBERS: dict[str, Any] = {
    "main_grad": property(main_gradient, set_main_gradient),
    "_slice": rows,
    "_copy_to": copy_to,
    "_grad_ivar": lambda tensor: tensor.grad,
    "_set_grad_ivar": set_grad,
    "_copy_gradient_from": set_grad,
    "_zero_grads": zero_grad,
    "_reset_grad_inplace_version": lambda tensor, set_to_zero=False: None,
    "_grad_name": lambda tensor: "",
    **dict.fromkeys(("_clear", "_clear_data", "_clear_dataptr", "_clear_to_zero_allocation"), clear_data),
    "_is_dense_tensor_hold_allocation": lambda tensor: type(tensor.payload) is not UninitializedPayload,
    "_offset": lambda tensor: tensor.payload.offset * tensor.itemsize,
    "_holder_size": lambda tensor: tensor.payload.storage.buffer.nbytes,
    "_inplace_assign": share_payload,
    "_new_shared_tensor": lambda tensor: tensor.detach(),
    "_unsafe_share_buffer_to": share_buffer,
    **dict.fromkeys(("_use_gpudnn", "_tensor_use_gpudnn"), lambda tensor, use=True: tensor.detach()),
    "contiguous": contiguous,
    "is_same_shape": is_same_shape,
    "get_device": get_device,
    "gradient": gradient,
    "value": lambda self: self,
    "is_cuda": property(lambda tensor: tensor.place.is_gpu_place()),
    "is_cpu": property(lambda tensor: tensor.place.is_cpu_place()),
    "is_selected_rows": lambda tensor: False,
    "_is_initialized": lambda tensor: type(tensor.payload) is not UninitializedPayload,
    "_numel": lambda tensor: tensor.size,
    "_inplace_version": lambda tensor: tensor.inplace_version,
    "_place_str": property(lambda tensor: repr(tensor.place)),
    "_md5sum": md5sum,
    "_share_buffer_to": share_buffer,
    "_share_underline_tensor_to": share_buffer,
    "_is_shared_buffer_with": shares_buffer,
    "_is_shared_underline_tensor_with": shares_buffer,
}
