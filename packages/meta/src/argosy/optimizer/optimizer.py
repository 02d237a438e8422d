"""What all optimizers share: parameters and groups, clipping, decay, accumulators, the rate, and their state dict.

The update rules are ordinary tensor operators and in-place writes without gradients, so that one code path serves
eager steps and captured ones. Accumulators are made eagerly even while a step is captured, where they become states
of the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from argosy.argument_checks import CheckedConstructor, validate_call
from argosy.optimizer import checkpoint
from argosy.optimizer.fused_buffers import FusedStorage
from argosy.optimizer.internals import Internals
from argosy.optimizer.lr import LRScheduler
from argosy.optimizer.native_pass import NativePass
from argosy.optimizer.rate import Rate
from argosy.static.differentiation import append_backward
from argosy.static.program import program_of
from argosy.static.session import current_programs
from argosy_autograd.modes import no_grad
from argosy_phi_ops.capture.tracer import Tracer, active_tracer
from argosy_phi_ops.eager.dispatch import suspend_layers, write
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["Optimizer"]

Pairs = list[tuple[Tensor, Tensor]]


class Group:
    """Parameters that share settings; ``options`` override the optimizer's (learning_rate is a factor; for others see
    ``Optimizer._group_settings``)."""

    __slots__ = ("options", "params")

    def __init__(self, params: Iterable[Tensor], options: dict[str, Any]) -> None:
        self.params = list(params)
        self.options = options


class Optimizer(CheckedConstructor, FusedStorage, Internals):
    """The base class: ``step`` collects gradients, clips, decays and calls :meth:`_update` for each parameter.

    learning_rate: a number or an ``lr.LRScheduler``; parameters: tensors, or dicts with ``params`` and own settings;
    weight_decay: a number (L2 added to the gradient) or a regularizer; grad_clip: one of ``nn.ClipGradBy*``.
    """

    _group_settings: ClassVar[Mapping[str, str]] = {}
    """Attributes of the rule that a group of parameters may set for itself, by the names of its options."""
    _reads_whole_parameters: ClassVar[bool] = False
    """Whether an element's update depends on the others, as where a norm of the parameter scales it."""

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        parameters: Sequence[Any] | None = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
        multi_precision: bool = False,
    ) -> None:
        if parameters is None and current_programs() is None:
            raise AttributeError(
                f"{type(self).__name__}: parameters must be given: a list of tensors, as model.parameters() gives it"
            )
        if isinstance(parameters, Tensor):
            raise TypeError("parameters must be a list of tensors, not a single tensor")
        kind = type(self).__name__
        if weight_decay is not None and not callable(weight_decay) and not isinstance(weight_decay, (int, float)):
            raise TypeError(
                f"{kind}(): argument 'weight_decay' must be a number or a regularizer, got {weight_decay!r}"
            )
        if grad_clip is not None and not callable(grad_clip):
            raise TypeError(f"{kind}(): argument 'grad_clip' must be one of nn.ClipGradBy*, got {grad_clip!r}")
        self._scheduler = learning_rate if isinstance(learning_rate, LRScheduler) else None
        self._rate = self._scheduler.rate if self._scheduler else Rate(learning_rate)  # type: ignore[arg-type]
        if not self._rate.value >= 0:
            raise ValueError(f"{kind}: learning_rate must not be negative, got {learning_rate}")
        self._weight_decay = weight_decay
        self._grad_clip = grad_clip
        self._name = name
        self._multi_precision = multi_precision
        self._groups = _make_groups(parameters or ())
        self._accumulators: dict[str, dict[str, Tensor]] = {}
        self._master_weights: dict[str, Tensor] = {}
        self._pending: dict[str, Any] = {}
        self._restored: set[str] = set()
        self._placing: Any = None  # set by distributed.shard_optimizer: (name, parameter, accumulator) -> accumulator
        self._lay_gradient: Any = None  # set by it, too: (parameter, gradient) -> gradient
        self._merged_steps = 1  # set by it, too: batches for one update in compiled steps
        self._states_first = False  # set by it, too: whether state_dict() makes the states

    def __repr__(self) -> str:
        rate = self._scheduler if self._scheduler is not None else f"{self._rate.value:g}"
        count = sum(p.size for p in self._parameter_list)
        kept = {name: getattr(self, attribute, None) for name, attribute in self._group_settings.items()}
        kept |= {"weight_decay": self._weight_decay, "grad_clip": self._grad_clip}
        shown = "".join(f", {name}={value!r:.60}" for name, value in kept.items() if value is not None)
        tensors = len(self._parameter_list)
        return f"{type(self).__name__}(learning_rate={rate}{shown}): {count:,} parameters in {tensors} tensors"

    @property
    def _parameter_list(self) -> list[Tensor]:
        return [p for group in self._groups for p in group.params]

    # ---- the step

    def step(self) -> None:
        """Update every parameter that has a gradient."""
        for index, group in enumerate(self._groups):
            pairs = [(p, p.grad) for p in group.params if not p.stop_gradient and p.grad is not None]
            self._apply_optimize(None, None, {"params": pairs, **group.options} if group.options else pairs, index)

    @validate_call
    def apply_gradients(self, params_grads: Sequence[tuple[Tensor, Tensor]]) -> None:
        """Update the parameters of these pairs with these gradients, each by the settings of its group."""
        owners = {id(p): group for group in self._groups for p in group.params}
        pairs: dict[int, Pairs] = {}
        options: dict[int, Mapping[str, Any]] = {}
        for p, g in params_grads:
            if g is not None:
                group = owners.get(id(p))
                pairs.setdefault(id(group), []).append((p, g))
                options[id(group)] = group.options if group is not None else {}
        with no_grad():
            for key, found in pairs.items():
                self._apply(found, options[key])

    @validate_call
    def minimize(
        self, loss: Tensor, startup_program: object = None, parameters: Any = None, no_grad_set: Any = None
    ) -> Any:
        """:meth:`step` with the gradients that ``loss.backward()`` has left; they are not cleared. In a static program
        gradients and update are recorded, by default for all its parameters.

        Returns ([], pairs of parameters and gradients): those of ``parameters``, without those in ``no_grad_set``.
        """
        pairs = self.backward(loss, startup_program, parameters, no_grad_set)
        self.apply_gradients(pairs)
        return [], pairs

    @validate_call
    def backward(
        self,
        loss: Tensor,
        startup_program: object = None,
        parameters: Any = None,
        no_grad_set: Any = None,
        callbacks: Any = None,
    ) -> list[tuple[Tensor, Tensor]]:
        """Pairs (parameter, gradient) that ``loss.backward()`` has left, or that a static program computes, for
        :meth:`apply_gradients`."""
        if program_of(loss) is not None:
            pairs = append_backward(loss, parameters or self._parameter_list or None, no_grad_set)
            if not self._parameter_list:
                self._groups = _make_groups([p for p, _ in pairs])
            return pairs
        left_out = {id(p) for p in no_grad_set or ()}
        chosen = [p for p in (self._parameter_list if parameters is None else parameters) if id(p) not in left_out]
        return [(p, p.grad) for p in chosen if not p.stop_gradient and p.grad is not None]

    def append_regularization_ops(
        self, parameters_and_grads: Sequence[tuple[Tensor, Any]], regularization: Any = None
    ) -> list[tuple[Tensor, Any]]:
        """The pairs with the penalties' gradients added; a parameter's own regularizer wins over ``regularization``."""
        with no_grad():
            return [
                (p, g if g is None else self._decay_gradient(p, g, regularization)) for p, g in parameters_and_grads
            ]

    def get_opti_var_name_list(self) -> list[str]:
        """Names of the accumulators made so far."""
        return [state.name for held in self._accumulators.values() for state in held.values()]

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Forget the gradients of all parameters; they read as zeros, or with ``set_to_zero=False`` as None."""
        for p in self._parameter_list:
            if not p.stop_gradient:
                p.clear_gradient(set_to_zero)

    clear_gradients = clear_grad

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters."""
        self.clear_grad(not set_to_none)

    def _apply(self, pairs: Pairs, options: Mapping[str, Any]) -> None:
        if not pairs:
            return
        clip = options.get("grad_clip", self._grad_clip)
        if clip is not None:
            pairs = clip(pairs)
        decay = options.get("weight_decay", self._weight_decay)
        pairs = [(p, self._decay_gradient(p, self._lay_out(p, g), decay)) for p, g in pairs]
        if not options:
            self._update_all(pairs, options)
            return
        with self._settings_of(options):
            self._update_all(pairs, options)

    def _update_all(self, pairs: Pairs, options: Mapping[str, Any]) -> None:
        if self._appends():
            self._create_optimization_pass({"params": pairs, **options})
            return
        shared = self._step_values(pairs, options)
        native_pass = self._native_pass()
        left = pairs if native_pass is None else native_pass.update(pairs, options, shared)
        for parameter, grad in left:
            self._update_one(parameter, grad, options, shared)

    @contextmanager
    def _settings_of(self, options: Mapping[str, Any]) -> Iterator[None]:
        """Within the block the rule has a group's own settings."""
        own = {kept: options[name] for name, kept in self._group_settings.items() if name in options}
        before = {kept: getattr(self, kept) for kept in own}
        vars(self).update(own)
        try:
            yield
        finally:
            vars(self).update(before)

    def _native_pass(self) -> NativePass | None:
        """The native pass that does what :meth:`_update` says; None where there is none."""
        return None

    def _update_one(self, parameter: Tensor, grad: Tensor, options: Mapping[str, Any], shared: Any) -> None:
        target = self._master(parameter)
        if target is not parameter:
            grad = grad.cast("float32")
        rate = self._rate_of(parameter, options)
        value = self._shrunk(parameter, target, rate, options)
        new = self._update(parameter, value, grad, rate, shared)
        write(target, new)
        if target is not parameter:
            write(parameter, new.cast(parameter.dtype))

    def _rate_of(self, parameter: Tensor, options: Mapping[str, Any]) -> Any:
        factor = options.get("learning_rate", 1.0) * _own_rate(parameter)
        rate: Any = self._rate.tensor
        return rate if factor == 1.0 else rate * float(factor)

    def _decay_gradient(self, parameter: Any, grad: Any, decay: Any) -> Any:
        """The gradient with L2 decay: the parameter's own regularizer wins over the optimizer's."""
        own = parameter.__dict__.get("regularizer")
        chosen = own if own is not None else decay
        if chosen is None or chosen == 0:
            return grad
        if isinstance(chosen, (int, float)):
            return grad + parameter * float(chosen)
        return chosen(parameter, grad)

    def _shrunk(self, parameter: Tensor, value: Any, rate: Any, options: Mapping[str, Any]) -> Any:
        """The value that the update starts from; AdamW decays it here."""
        return value

    def _step_values(self, pairs: Pairs, options: Mapping[str, Any]) -> Any:
        """What one step computes once for all its parameters; see Adam."""
        return None

    def _update(self, parameter: Tensor, value: Any, grad: Any, rate: Any, shared: Any) -> Tensor:
        """The new value of ``parameter``. ``value`` is its current one (a float32 master copy with multi_precision)."""
        raise NotImplementedError(f"{type(self).__name__} does not define an update rule")

    def _lay_out(self, parameter: Tensor, grad: Tensor) -> Tensor:
        """The gradient of a distributed parameter where the update wants it: laid out like the parameter, or as
        ``shard_optimizer`` says. Sums over ranks are made here, before anything reads them.
        """
        payload = parameter.payload
        layout = None if type(payload) is StridedArray else getattr(payload, "layout", None)
        if layout is None:
            return grad
        if self._lay_gradient is not None:
            return self._lay_gradient(parameter, grad)  # type: ignore[no-any-return]
        wanted = layout.cotangent()
        if getattr(grad.payload, "layout", None) == wanted:
            return grad
        from argosy_autoparallel.api import reshard

        return reshard(grad, wanted.mesh, wanted.placements)

    # ---- state tensors

    def _accumulator(
        self,
        name: str,
        parameter: Tensor,
        fill: float = 0.0,
        shape: Sequence[int] | None = None,
        dtype: str | None = None,
    ) -> Tensor:
        """The state tensor ``name`` of ``parameter``, made on first use."""
        held = self._accumulators.setdefault(name, {})
        found = held.get(parameter.name)
        if found is None:
            if parameter.name in self._restored:
                checkpoint.require_state(self._pending, f"{parameter.name}_{name}_0", self)
            found = held[parameter.name] = self._make(name, parameter, fill, shape, dtype)
        return found

    def _make(
        self,
        name: str,
        parameter: Tensor,
        fill: float,
        shape: Sequence[int] | None,
        dtype: str | None = None,
    ) -> Tensor:
        key = f"{parameter.name}_{name}_0"
        sizes = tuple(parameter.shape if shape is None else shape)
        with suspend_layers():
            there = _device_of(parameter)
            state = Tensor._wrap(StridedArray.empty(sizes, dtype or self._state_dtype(parameter), there))
            state.payload.fill_from(fill)
            state.name = key
            if key in self._pending:
                checkpoint.fill(state, self._pending.pop(key), key)
            state.persistable = True
            return self._place_state(name, parameter, state)

    def _place_state(self, name: str, parameter: Tensor, state: Tensor) -> Tensor:
        """The state where ``shard_optimizer`` wants it, or else laid out like its parameter."""
        if self._placing is not None:
            return self._placing(name, parameter, state)  # type: ignore[no-any-return]
        layout = getattr(parameter.payload, "layout", None)
        if layout is None or state.payload.shape != parameter.payload.shape:
            return state
        from argosy_autoparallel.api import shard_tensor

        placed = shard_tensor(state, layout.mesh, layout.placements)
        placed.payload = placed.payload.on_device(parameter.payload.device)
        return placed

    def _state_dtype(self, parameter: Tensor) -> str:
        return "float32" if self._wants_master(parameter) else parameter.dtype.name

    def _wants_master(self, parameter: Tensor) -> bool:
        return self._multi_precision and parameter.dtype.itemsize < 4

    def _master(self, parameter: Tensor) -> Tensor:
        """The float32 copy that is updated in place of a half-precision parameter, or the parameter itself."""
        if not self._wants_master(parameter):
            return parameter
        found = self._master_weights.get(parameter.name)
        if found is None:
            with suspend_layers(), no_grad():
                found = parameter.cast("float32")
                found.name = f"{parameter.name}_fp32_master_0"
                if found.name in self._pending:
                    checkpoint.fill(found, self._pending.pop(found.name), found.name)
            self._master_weights[parameter.name] = found
        return found

    def make_states(self) -> None:
        """Make the accumulators of all parameters that the first step would make, as a checkpoint is loaded into them.

        The step is captured, with the parameters as gradients, and thrown away: values stay what they are.
        """
        if active_tracer() is not None:
            return
        with suspend_layers(), no_grad(), Tracer("states"):
            for group in self._groups:
                self._apply([(p, p) for p in group.params if not p.stop_gradient], group.options)

    # ---- the rate

    @property
    def _learning_rate(self) -> Any:
        """The scheduler that determines the rate, or the rate: under this name Paddle's users find it."""
        return self._rate.value if self._scheduler is None else self._scheduler

    def get_lr(self) -> float:
        """The current learning rate."""
        return self._rate.value

    @validate_call
    def set_lr(self, value: float) -> None:
        """Change the learning rate. Raises RuntimeError when a scheduler determines it."""
        if self._scheduler is not None:
            raise RuntimeError(
                "set_lr() cannot change the rate of an optimizer with an LRScheduler; use set_lr_scheduler()"
            )
        self._rate.set(value)

    def set_lr_scheduler(self, scheduler: LRScheduler) -> None:
        """Let ``scheduler`` determine the rate from now on. A captured step is captured anew."""
        if not isinstance(scheduler, LRScheduler):
            raise TypeError(f"set_lr_scheduler() takes an LRScheduler, not {type(scheduler).__name__}")
        self._scheduler, self._rate = scheduler, scheduler.rate

    # ---- checkpoints

    def state_dict(self) -> dict[str, Any]:
        """Accumulators as ``<parameter>_<name>_0``, ``master_weights`` and ``LR_Scheduler`` when there are such.

        After ``distributed.shard_optimizer`` they are made here, where no step has made them yet.
        """
        if self._states_first:
            self.make_states()
        return checkpoint.collect(self)

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Put back what :meth:`state_dict` gave. Accumulators not made yet take their value when they are; parameters
        of which the dict holds nothing begin anew, and entries of parameters that this optimizer does not have are
        left out where it finds those of all its own.

        Raises ValueError naming entries that are missing, of the wrong shape, or of unknown parameters.
        """
        checkpoint.restore(self, state_dict)

    def set_dict(self, state_dict: Mapping[str, Any]) -> None:
        """:meth:`set_state_dict`."""
        self.set_state_dict(state_dict)

    load_state_dict = set_dict


def _make_groups(parameters: Sequence[Any]) -> list[Group]:
    items = list(parameters)
    if items and isinstance(items[0], dict):
        for item in items:
            if not isinstance(item, dict) or "params" not in item:
                raise ValueError(f"argument 'parameters': each group should be a dict with 'params', got {item!r:.80}")
        groups = [Group(item["params"], {k: v for k, v in item.items() if k != "params"}) for item in items]
    else:
        groups = [Group(items, {})]
    seen: set[int] = set()
    for group in groups:
        for p in group.params:
            if not isinstance(p, Tensor):
                raise TypeError(f"an optimizer takes tensors, not {type(p).__name__}")
            if id(p) in seen:
                raise ValueError(f"parameter {p.name} is given to the optimizer twice")
            seen.add(id(p))
    return groups


def _device_of(parameter: Tensor) -> Any:
    """Where a parameter, or this rank's part of it, is; None for memory that the host sees."""
    payload = parameter.payload
    return getattr(payload, "local", payload).array_type.device


def _own_rate(parameter: Tensor) -> float:
    attributes = parameter.__dict__.get("optimize_attr")
    return float(attributes["learning_rate"]) if attributes else 1.0
