"""``DataParallel``: a copy of a layer on every rank, each with data of its own; gradients are averaged in backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from argosy.distributed.collective import all_reduce, broadcast
from argosy.distributed.group import Group, world_group
from argosy.distributed.reduction import ReduceOp
from argosy.nn.layer import Layer
from argosy_autoparallel.dist_tensor import is_dist
from argosy_phi_ops.dispatch import suspended
from argosy_tensorcore.tensor import Tensor

__all__ = ["DataParallel"]


class DataParallel(Layer):
    """``layers`` with the parameters and buffers of the group's first rank everywhere; calls are those of ``layers``.

    In a backward pass each parameter's gradient becomes the mean over the ranks of ``group`` (default: all) as soon as
    it is known, so every rank must run the same backward passes; parameters that some ranks do not use are an error,
    CollectiveMismatch. The sizes of buffers and ``find_unused_parameters`` are accepted for compatibility: gradients
    travel one by one. Parameters are ordinary tensors; the annotated way is ``shard_dataloader`` and friends.
    """

    def __init__(
        self,
        layers: Layer,
        strategy: object = None,
        comm_buffer_size: int = 25,
        last_comm_buffer_size: int = 1,
        find_unused_parameters: bool = False,
        group: Group | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(layers, Layer):
            raise TypeError(f"DataParallel takes a Layer, not {type(layers).__name__}")
        self._layers = layers
        self._group = world_group() if group is None else group
        self._averaging = True
        self._behind: set[int] = set()  # parameters whose gradients differ between ranks, after no_sync()
        if not self._group.is_member():
            raise ValueError(f"DataParallel: this rank is not a member of {self._group!r}")
        if self._group.nranks > 1:
            self._equalize()
            self.init_reducer()

    def _equalize(self) -> None:
        """Give every rank the first one's values."""
        for tensor in (*self._layers.parameters(), *self._layers.buffers()):
            if is_dist(tensor):
                raise TypeError(f"DataParallel: {tensor.name} is a distributed tensor already")
            broadcast(tensor, self._group.ranks[0], self._group)

    def init_reducer(self) -> None:
        """Let each parameter's gradient be averaged when it is known."""
        for number, parameter in enumerate(self._layers.parameters()):
            if not parameter.stop_gradient:
                parameter.register_hook(self._hook(number, parameter))

    def _hook(self, number: int, parameter: Any) -> Callable[[Tensor], Tensor | None]:
        def average(gradient: Any) -> Any:
            if not self._averaging:
                self._behind.add(number)
                return None
            with suspended():
                behind = parameter.grad if number in self._behind else None
                whole = gradient.detach().clone() if behind is None else gradient.detach() + behind
                all_reduce(whole, ReduceOp.AVG, self._group)
            self._behind.discard(number)
            return whole if behind is None else whole - behind

        return average

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Only add up this rank's gradients within the block; the next backward pass outside averages the sums."""
        before, self._averaging = self._averaging, False
        try:
            yield
        finally:
            self._averaging = before

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What ``layers`` gives."""
        return self._layers(*inputs, **kwargs)

    def scale_loss(self, loss: Tensor) -> Tensor:
        """The loss itself: gradients are averaged, not added."""
        return loss

    def apply_collective_grads(self) -> None:
        """Nothing is left to do: gradients are averaged in the backward pass."""

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """That of ``layers``, under its own names."""
        return self._layers.state_dict(*args, **kwargs)

    def set_state_dict(self, state_dict: Any, use_structured_name: bool = True) -> Any:
        """Put back what :meth:`state_dict` gave."""
        return self._layers.set_state_dict(state_dict, use_structured_name)

    set_dict = set_state_dict
    load_dict = set_state_dict
