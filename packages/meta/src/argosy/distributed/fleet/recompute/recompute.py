"""Regions of a forward pass that are computed again in the backward pass instead of being kept (Chen et al., 2016)."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

import argosy.runtime  # noqa: F401  (operators and the tape come with the first tensor)
from argosy.amp.casting import cast_operands, current
from argosy.distributed.fleet.layers.mpu.random import get_rng_state_tracker
from argosy.framework.random import get_rng_state, set_rng_state
from argosy.jit.arguments import tensors_in
from argosy.nn.layer import Layer
from argosy_autograd.errors import DifferentiationError
from argosy_autograd.hooks import saved_tensors_hooks
from argosy_autograd.modes import enable_grad, is_grad_enabled
from argosy_phi_ops.capture.tracer import active_tracer
from argosy_phi_ops.context import context
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "check_recompute_necessary",
    "recompute",
    "recompute_hybrid",
    "recompute_layers",
    "recompute_sequential",
    "switch_rng_state_tracker",
]

_log = logging.getLogger(__name__)


class _Region:
    """One call of a function: in place of each tensor that the tape would keep, its number is kept.

    The first of them that the backward pass asks for makes the function run again, with the random state and the mixed
    precision of the first time; the tensors are let go when all have been asked for.
    """

    def __init__(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], same_random: bool,
        offload: Sequence[int],
    ) -> None:  # fmt: skip
        self.function, self.kwargs = function, kwargs
        self.places = {i: args[i].place for i in offload if not args[i].place.is_cpu_place()}
        self.args = [_copy_to(x, "cpu") if i in self.places else x for i, x in enumerate(args)]
        self.random = context().generator.get_state() if same_random else None
        self.precision = current()
        self.versions = self._versions()
        self.count = 0
        self.left: set[int] = set()
        self.made: list[Tensor] = []

    def _versions(self) -> list[int]:
        found: list[int] = []
        tensors_in([list(self.args), dict(self.kwargs)], lambda x: found.append(x.payload.version))
        return found

    def run(self, args: Sequence[Any]) -> Any:
        """The first time."""
        with saved_tensors_hooks(self._number, self._tensor):
            return self.function(*args, **self.kwargs)

    def _number(self, tensor: Tensor) -> int:
        self.count += 1
        return self.count - 1

    def _tensor(self, number: int) -> Tensor:
        if not self.made:
            self._rerun()
        tensor = self.made[number]
        self.left.discard(number)
        if not self.left:
            self.made = []
        return tensor

    def _rerun(self) -> None:
        name = getattr(self.function, "__name__", type(self.function).__name__)
        if self._versions() != self.versions:
            raise DifferentiationError(f"recompute: an argument of {name} was changed in place after the call")
        generator = context().generator
        now = generator.get_state()
        if self.random is not None:
            generator.set_state(self.random)
        made: list[Tensor] = []
        args = [_copy_to(x, self.places[i]) if i in self.places else x for i, x in enumerate(self.args)]
        try:
            with enable_grad(), cast_operands(self.precision), saved_tensors_hooks(_kept_in(made), _refuse_unpack):
                self.function(*args, **self.kwargs)
        finally:
            if self.random is not None:
                generator.set_state(now)
        if len(made) != self.count:
            raise DifferentiationError(
                f"recompute: {name} kept {self.count} tensors for its gradient, but {len(made)} when it ran again: it "
                "should compute the same each time"
            )
        self.made, self.left = made, set(range(len(made)))


def _copy_to(tensor: Tensor, place: Any) -> Tensor:
    made: Tensor = tensor.detach().to(place)
    made.stop_gradient = tensor.stop_gradient
    return made


def _kept_in(made: list[Tensor]) -> Callable[[Tensor], int]:
    def keep(tensor: Tensor) -> int:
        made.append(tensor)
        return len(made) - 1

    return keep


def _refuse_unpack(packed: Any) -> Tensor:
    raise DifferentiationError("recompute: the graph of the second run has no gradient of its own")


def recompute(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """``function(*args, **kwargs)``, of which the backward pass keeps the arguments alone and computes the rest again.

    ``preserve_rng_state`` (True) draws the same random numbers then; ``offload_indices`` says which of ``args``,
    tensors each, are kept in host memory meanwhile; ``use_reentrant`` changes nothing: gradients reach everything that
    the function reads. What it does besides computing, as running statistics, happens twice. In a captured function the
    region is captured once; a stage of a pipeline computes it again, and so does a step of ``distributed.to_static``
    with ``Strategy.recompute``; elsewhere the compiler plans what is kept. Raises
    TypeError for what cannot be called; the backward pass raises DifferentiationError where arguments were changed in
    place meanwhile, or the second run kept other tensors than the first. Returns what the function does.
    """
    same_random = bool(kwargs.pop("preserve_rng_state", True))
    kwargs.pop("use_reentrant", None)
    offload = kwargs.pop("offload_indices", ())
    if not callable(function):
        raise TypeError(f"recompute: a function or a layer is wanted, got {type(function).__name__}")
    tracer = active_tracer()
    if tracer is not None and (tracer.recomputes or tracer.stage is not None):
        return _capture_region(tracer, function, args, kwargs)
    if tracer is not None or not is_grad_enabled():
        return function(*args, **kwargs)
    return _Region(function, args, kwargs, same_random, offload).run(args)


def _capture_region(tracer: Any, function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> Any:
    """The region in a capture, its operations marked; one within another belongs to it."""
    if tracer.recompute is not None:
        return function(*args, **kwargs)
    number, tracer.regions = tracer.regions, tracer.regions + 1
    tracer.recompute = None if number in tracer.kept_regions else number
    try:
        return function(*args, **kwargs)
    finally:
        tracer.recompute = None


def recompute_layers(model: Layer, names: Sequence[str], owner: str, offload: bool = False) -> None:
    """Make each call of the layers ``names`` of ``model`` a region; with ``offload`` what they are given is in host
    memory meanwhile. Raises ValueError, in the name of ``owner``, for no layers and for unknown ones."""
    layers = dict(model.named_sublayers())
    if not names or (unknown := [name for name in names if name not in layers]):
        raise ValueError(
            f"{owner}: checkpoints are names of the model's layers, not {unknown if names else names}; there are "
            f"{[*layers]}"
        )
    for name in names:
        layers[name].forward = partial(_run_again, layers[name].forward, offload)  # type: ignore[method-assign]


def _run_again(forward: Callable[..., Any], offload: bool, *inputs: Any, **kwargs: Any) -> Any:
    chosen = [i for i, x in enumerate(inputs) if isinstance(x, Tensor)] if offload else ()
    return recompute(forward, *inputs, offload_indices=chosen, **kwargs)


def recompute_sequential(ctx: Mapping[str, Any], functions: Any, *args: Any, **kwargs: Any) -> Any:
    """The functions (or layers of a Sequential) one after the other, in ``ctx["segments"]`` (1) recomputed regions.

    The last region is computed once, as its backward pass comes first. Raises ValueError for no segments.
    Returns what the last function does.
    """
    segments = int(ctx.get("segments", 1))
    chain = list(functions)
    if segments < 1:
        raise ValueError(f"recompute_sequential: segments should be positive, got {segments}")
    size = max(len(chain) // segments, 1)
    starts = list(range(0, size * (segments - 1), size))[: max(len(chain) - 1, 0)]
    for start in starts:
        result = recompute(
            _chain(chain[start : start + size]),
            *args,
            preserve_rng_state=ctx.get("preserve_rng_state", True),
            **kwargs,
        )
        args, kwargs = (result if isinstance(result, tuple) else (result,)), {}
    return _chain(chain[len(starts) * size :])(*args, **kwargs)


def recompute_hybrid(ctx: Mapping[str, Any], function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """:func:`recompute` for a layer whose ranks are those of ``ctx["mp_group"]``.

    The arguments, which are all that is kept, stay whole and where they are: ``offload`` and ``partition`` change
    nothing. Raises ValueError without the group. Returns what the function does.
    """
    if ctx.get("mp_group") is None:
        raise ValueError("recompute_hybrid: argument 'ctx' should have the group of ranks under 'mp_group', got none")
    return recompute(function, *args, **kwargs)


def _chain(functions: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        result: Any = args[0] if len(args) == 1 else args
        for function in functions:
            result = function(*args, **kwargs)
            args, kwargs = (result if isinstance(result, tuple) else (result,)), {}
        return result

    return run


def check_recompute_necessary(inputs: Iterable[Any]) -> None:
    """Warn where no input of a region wants a gradient: there is nothing to keep less of."""
    found: list[Tensor] = []
    tensors_in(list(inputs), found.append)
    if all(x.stop_gradient for x in found):
        _log.warning("recompute: none of the inputs wants a gradient, so that nothing has to be computed again")


@contextmanager
def switch_rng_state_tracker(
    rng_state: Any,
    tracker: Mapping[str, Any],
    numpy_state: Any,
    random_state: Any,
    custom_state: Any = None,
    custom_get_state_func: Callable[[], Any] | None = None,
    custom_set_state_func: Callable[[Any], None] | None = None,
) -> Iterator[None]:
    """Draw from these states within the block: ours as ``get_rng_state`` gives it, those by name, NumPy's, Python's
    and, with functions to get and set it, one more.

    Raises ValueError for a ``custom_state`` without its functions.
    """
    if custom_state is not None and (custom_get_state_func is None or custom_set_state_func is None):
        raise ValueError("switch_rng_state_tracker: custom_state needs functions to get and set it")
    named = get_rng_state_tracker()
    kept = get_rng_state(), named.get_states_tracker(), np.random.get_state(), random.getstate()
    extra = custom_get_state_func() if custom_state is not None and custom_get_state_func is not None else None

    def switch(own: Any, by_name: Mapping[str, Any], numpy: Any, python: Any, custom: Any) -> None:
        set_rng_state(own)
        named.set_states_tracker(by_name)
        np.random.set_state(numpy)
        random.setstate(python)
        if custom_state is not None and custom_set_state_func is not None:
            custom_set_state_func(custom)

    switch(rng_state, tracker, numpy_state, random_state, custom_state)
    try:
        yield
    finally:
        switch(*kept, extra)
