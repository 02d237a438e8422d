"""Adam and AdamW.

As in Paddle the bias correction goes into the step size and epsilon is scaled with it:
``p -= lr * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon * sqrt(1 - beta2^t))``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from argosy.optimizer import checkpoint
from argosy.optimizer.lr import LRScheduler
from argosy.optimizer.native_pass import NativePass, Options, has_update_of
from argosy.optimizer.optimizer import Optimizer, Pairs
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager import native
from argosy_phi_ops.eager.dispatch import write
from argosy_tensorcore.tensor import Tensor

__all__ = ["Adam", "AdamW"]

BETA1_POW, BETA2_POW = "beta1_pow_acc", "beta2_pow_acc"


class _Correction:
    """Bias corrections of one step: 0-D tensors ``1 / (1 - beta1^t)`` and ``sqrt(1 - beta2^t)``, and what all
    parameters make of them alike, made once."""

    __slots__ = ("_epsilon", "_sizes", "first", "root")

    def __init__(self, first: Any, root: Any) -> None:
        self.first = first
        self.root = root
        self._epsilon: Any = None
        self._sizes: dict[int, tuple[Any, Any]] = {}

    def size(self, rate: Any) -> Any:
        """The corrected step size of a learning rate."""
        found = self._sizes.get(id(rate))
        if found is None:  # the rate is kept, so that no other one gets its id
            found = self._sizes[id(rate)] = rate * self.root * self.first, rate
        return found[0]

    def epsilon(self, epsilon: float) -> Any:
        """The corrected epsilon."""
        if self._epsilon is None:
            self._epsilon = self.root * epsilon
        return self._epsilon


class Adam(Optimizer):
    """Adaptive moments (Kingma and Ba, 2015).

    With ``lazy_mode`` a row of the table of an ``Embedding(sparse=True)`` stands still, with its moments, in a step
    whose gradient of it is zero.
    """

    _moment1_acc_str, _moment2_acc_str, _moment2_acc_max_str = "moment1", "moment2", "moment2_max"
    _beta1_pow_acc_str, _beta2_pow_acc_str = BETA1_POW, BETA2_POW

    _group_settings: ClassVar[Mapping[str, str]] = {
        "beta1": "_beta1",
        "beta2": "_beta2",
        "epsilon": "_epsilon",
        "lazy_mode": "_lazy_mode",
    }

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        parameters: Sequence[Any] | None = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        lazy_mode: bool = False,
        multi_precision: bool = False,
        use_multi_tensor: bool = False,
        amsgrad: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, multi_precision)
        for label, value in (("beta1", beta1), ("beta2", beta2)):
            if not 0 <= float(value) < 1:
                raise ValueError(f"{type(self).__name__}: {label} must be in [0, 1), got {value}")
        if float(epsilon) < 0:
            raise ValueError(f"{type(self).__name__}: epsilon must not be negative, got {epsilon}")
        self._beta1, self._beta2, self._epsilon = float(beta1), float(beta2), float(epsilon)
        self._amsgrad, self._lazy_mode = amsgrad, lazy_mode
        self._already_create_accumulator: set[str] = set()

    # What subclasses that define the update of a parameter themselves begin with.

    def _create_accumulators(self, block: Any, parameters: Sequence[Tensor]) -> None:
        for p in parameters:
            if p.name not in self._already_create_accumulator:
                self._create_master_weight(p)
                self._add_moments_pows(p)
                self._already_create_accumulator.add(p.name)

    def _add_moments_pows(self, p: Tensor) -> None:
        """Make the states of a parameter: its moments, and powers of its own."""
        names = ["moment1", "moment2", "moment2_max"] if self._amsgrad else ["moment1", "moment2"]
        for name in names:
            self._accumulator(name, p)
        for name, beta in ((BETA1_POW, self._beta1), (BETA2_POW, self._beta2)):
            self._accumulator(name, p, beta, [1])

    # The powers beta^t. Parameters that began together share one pair of tensors, so that a step corrects once.

    def _step_values(self, pairs: Pairs, options: Mapping[str, Any]) -> dict[int, _Correction]:
        corrections: dict[int, _Correction] = {}
        for cohort in self._cohorts([p for p, _ in pairs]):
            pows: list[Any] = [self._accumulators[name][cohort[0].name] for name in (BETA1_POW, BETA2_POW)]
            first, second = (pow.reshape([]) for pow in pows)
            made = _Correction(1.0 / (1.0 - first), (1.0 - second).sqrt())
            corrections.update({id(p): made for p in cohort})
            for pow, beta in zip(pows, (self._beta1, self._beta2), strict=True):
                write(pow, pow * beta)
        return corrections

    def _cohorts(self, parameters: list[Tensor]) -> list[list[Tensor]]:
        """``parameters`` by the pair of powers they share; who shares one but does not step keeps the old pair."""
        self._begin([p for p in parameters if p.name not in self._accumulators.get(BETA1_POW, {})])
        held = self._accumulators[BETA1_POW]
        found: dict[int, list[Tensor]] = {}
        for p in parameters:
            found.setdefault(id(held[p.name]), []).append(p)
        for shared, cohort in found.items():
            stepping = {p.name for p in cohort}
            if any(id(pow) == shared and name not in stepping for name, pow in held.items()):
                self._part(cohort)
        return list(found.values())

    def _begin(self, parameters: list[Tensor]) -> None:
        waiting = [p for p in parameters if f"{p.name}_{BETA1_POW}_0" in self._pending]
        for p in waiting:
            self._make_pows([p])
        self._make_pows([p for p in parameters if p not in _Identity(waiting)])
        self._join(waiting)

    def _make_pows(self, parameters: list[Tensor]) -> None:
        if not parameters:
            return
        for name, beta in ((BETA1_POW, self._beta1), (BETA2_POW, self._beta2)):
            pow = self._accumulator(name, parameters[0], beta, [1])
            self._accumulators[name].update({p.name: pow for p in parameters})

    def _join(self, parameters: list[Tensor]) -> None:
        """Share powers that a checkpoint restored to equal values."""
        first: dict[tuple[float, float], str] = {}
        for p in parameters:
            values = tuple(
                float(self._accumulators[name][p.name].payload.to_host()[0]) for name in (BETA1_POW, BETA2_POW)
            )
            owner = first.setdefault(values, p.name)  # type: ignore[arg-type]
            for name in (BETA1_POW, BETA2_POW):
                self._accumulators[name][p.name] = self._accumulators[name][owner]

    def _part(self, parameters: list[Tensor]) -> None:
        for name, beta in ((BETA1_POW, self._beta1), (BETA2_POW, self._beta2)):
            old = self._accumulators[name][parameters[0].name]
            new = self._make(name, parameters[0], beta, [1])
            write(new, old)
            self._accumulators[name].update({p.name: new for p in parameters})

    # The rule

    def _update(self, parameter: Tensor, value: Any, grad: Any, rate: Any, shared: Any) -> Tensor:
        moment1: Any = self._accumulator("moment1", parameter)
        moment2: Any = self._accumulator("moment2", parameter)
        m = moment1 * self._beta1 + grad * (1 - self._beta1)
        v = moment2 * self._beta2 + (grad * grad) * (1 - self._beta2)
        touched = (grad != 0).any(axis=-1, keepdim=True) if self._is_lazy(parameter) else None
        if touched is not None:
            m, v = _select(touched, m, moment1), _select(touched, v, moment2)
        write(moment1, m)
        write(moment2, v)
        if self._amsgrad:
            highest: Any = self._accumulator("moment2_max", parameter)
            v = highest.maximum(v)
            write(highest, v)
        correction = shared[id(parameter)]
        step = correction.size(rate) * (m / (v.sqrt() + correction.epsilon(self._epsilon)))
        new = value - step
        return new if touched is None else _select(touched, new, self._master(parameter))  # type: ignore[no-any-return]

    def _is_lazy(self, parameter: Tensor) -> bool:
        return self._lazy_mode and "sparse_gradient" in parameter.__dict__

    def _native_pass(self) -> NativePass | None:
        return _AdamPass(self, "adam") if not self._amsgrad and has_update_of(self, Adam, AdamW) else None

    def _decay_of(self, parameter: Tensor, options: Mapping[str, Any]) -> float:
        """How much of it a parameter loses in a step, times the rate: decoupled decay."""
        return 0.0


class _AdamPass(NativePass):
    __slots__ = ()

    def states(self, parameter: Tensor) -> list[Tensor]:
        """Both moments."""
        return [self.optimizer._accumulator(name, parameter) for name in ("moment1", "moment2")]

    def group_key(self, parameter: Tensor, options: Options, shared: Any) -> Any:
        """Correction, decay and laziness."""
        adam = self.optimizer
        return id(shared[id(parameter)]), adam._decay_of(parameter, options), adam._is_lazy(parameter)

    def scalars(self, parameter: Tensor, rate: Any, options: Options, shared: Any) -> Sequence[Any] | None:
        """Factors of the moments and of the parameter, and the corrected step size and epsilon."""
        adam, correction = self.optimizer, shared[id(parameter)]
        numbers = native.numbers(rate, correction.root, correction.first)
        if numbers is None or adam._is_lazy(parameter):
            return None
        rate, root, first = numbers
        betas = (adam._beta1, 1 - adam._beta1, adam._beta2, 1 - adam._beta2)
        remaining = rate.dtype.type(1) - rate * rate.dtype.type(adam._decay_of(parameter, options))
        return (*betas, remaining, rate * root * first, root * root.dtype.type(adam._epsilon))


class AdamW(Adam):
    """Adam with decoupled weight decay: ``p *= 1 - lr * weight_decay`` first (Loshchilov and Hutter, 2019)."""

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        parameters: Sequence[Any] | None = None,
        weight_decay: float = 0.01,
        use_lowprecision_moment: bool = False,
        lr_ratio: Callable[[Tensor], float] | None = None,
        apply_decay_param_fun: Callable[[str], bool] | None = None,
        grad_clip: Any = None,
        lazy_mode: bool = False,
        multi_precision: bool = False,
        amsgrad: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(
            learning_rate,
            beta1,
            beta2,
            epsilon,
            parameters,
            None,
            grad_clip,
            lazy_mode,
            multi_precision,
            False,
            amsgrad,
            name,
        )
        if not isinstance(weight_decay, (int, float)):
            raise TypeError(f"AdamW: weight_decay is a number, not {type(weight_decay).__name__}")
        self._weight_decay = float(weight_decay)
        self._lr_ratio = lr_ratio
        self._params_name: set[str] = set()
        self._apply_decay_param_fun = apply_decay_param_fun

    @property
    def regularization(self) -> None:
        """None: the decay is decoupled from gradients."""
        return None

    def sharded_state_dict(self, model_sharded_state_dict: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The states under the names of ``model.sharded_state_dict()``: ``<name>.moment1_0``, ``<name>.w_0`` ...

        Sharded tensors come as they are. Raises ValueError for a parameter that the model's state dict lacks.
        """
        return checkpoint.structured_names(self, model_sharded_state_dict)

    def _decay_gradient(self, parameter: Tensor, grad: Any, decay: Any) -> Any:
        return super()._decay_gradient(parameter, grad, None)  # the optimizer's own decay is decoupled: see _shrunk

    def _shrunk(self, parameter: Tensor, value: Any, rate: Any, options: Mapping[str, Any]) -> Any:
        amount = self._decay_of(parameter, options)
        return value * (1.0 - rate * amount) if amount else value

    def _decay_of(self, parameter: Tensor, options: Mapping[str, Any]) -> float:
        if self._apply_decay_param_fun is not None and not self._apply_decay_param_fun(parameter.name):
            return 0.0
        return float(options.get("weight_decay", self._weight_decay) or 0.0)

    def _rate_of(self, parameter: Tensor, options: Mapping[str, Any]) -> Any:
        rate = super()._rate_of(parameter, options)
        return rate if self._lr_ratio is None else rate * float(self._lr_ratio(parameter))


def _select(condition: Any, x: Any, y: Any) -> Any:
    return get_operator("where")(condition, x, y)


class _Identity:
    """Membership by identity: ``==`` of tensors is elementwise."""

    __slots__ = ("_ids",)

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._ids = {id(t) for t in tensors}

    def __contains__(self, tensor: object) -> bool:
        return id(tensor) in self._ids
