"""Members of Tensor that few programs use: Paddle's looks at a tensor's internals.

``MEMBERS`` maps names to methods and properties. ``Tensor`` looks here when a name is first used, as it looks for
operators, so that programs that never ask load nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from argosy_tensorcore.conversion import bit_pattern, host_array
from argosy_tensorcore.storage import Array, Strided
from argosy_tensorcore.unfilled import Unfilled

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
    return type(mine) is Strided and type(theirs) is Strided and mine.shares_storage(theirs)


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


MEMBERS: dict[str, Any] = {
    "contiguous": contiguous,
    "is_same_shape": is_same_shape,
    "get_device": get_device,
    "gradient": gradient,
    "value": lambda self: self,
    "is_cuda": property(lambda tensor: tensor.place.is_gpu_place()),
    "is_cpu": property(lambda tensor: tensor.place.is_cpu_place()),
    "is_selected_rows": lambda tensor: False,
    "_is_initialized": lambda tensor: type(tensor.payload) is not Unfilled,
    "_numel": lambda tensor: tensor.size,
    "_inplace_version": lambda tensor: tensor.inplace_version,
    "_place_str": property(lambda tensor: repr(tensor.place)),
    "_md5sum": md5sum,
    "_share_buffer_to": share_buffer,
    "_share_underline_tensor_to": share_buffer,
    "_is_shared_buffer_with": shares_buffer,
    "_is_shared_underline_tensor_with": shares_buffer,
}
