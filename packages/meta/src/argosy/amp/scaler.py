"""``GradScaler``: losses scaled up so that float16 gradients do not vanish, and the scale adapted to what overflows.

(Micikevicius et al., "Mixed Precision Training", 2018, with Paddle's defaults and names.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from argosy.amp.captured_scaling import ScaleState, any_overflow, step_unless
from argosy.argument_checks import validate_call
from argosy.argument_repr import ArgumentRepr
from argosy.nn.meshes import full_mesh, mesh_of, on_mesh
from argosy_autograd.modes import no_grad
from argosy_phi_ops.capture.tracer import active_tracer
from argosy_phi_ops.eager.dispatch import suspend_layers, write
from argosy_tensorcore.tensor import Tensor

__all__ = ["GradScaler"]

_SETTINGS = ("incr_ratio", "decr_ratio", "incr_every_n_steps", "decr_every_n_nan_or_inf")


class GradScaler(ArgumentRepr):
    """Scales losses by a factor that halves when gradients overflow and doubles after many steps without.

    ``scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()``, or ``minimize`` for the last two. Steps
    whose gradients hold infinities or NaN are skipped. With ``enable=False`` every method does the plain thing. In a
    captured step all of it is part of the program, which decides anew each time it runs.
    """

    @validate_call
    def __init__(
        self,
        enable: bool = True,
        init_loss_scaling: float = 65536.0,
        incr_ratio: float = 2.0,
        decr_ratio: float = 0.5,
        incr_every_n_steps: int = 2000,
        decr_every_n_nan_or_inf: int = 1,
        use_dynamic_loss_scaling: bool = True,
    ) -> None:
        if init_loss_scaling <= 0:
            raise ValueError(f"GradScaler(): argument 'init_loss_scaling' must be positive, got {init_loss_scaling}")
        self._enable = bool(enable)
        self._dynamic = bool(use_dynamic_loss_scaling) and self._enable
        self._init_scale = self._scale = float(init_loss_scaling) if self._enable else 1.0
        self._incr_count = self._decr_count = 0
        self._found_inf: Any = False
        self._unscaled: set[int] = set()
        self._state: ScaleState | None = None  # once a step was captured
        self.set_incr_ratio(incr_ratio)
        self.set_decr_ratio(decr_ratio)
        self.set_incr_every_n_steps(incr_every_n_steps)
        self.set_decr_every_n_nan_or_inf(decr_every_n_nan_or_inf)

    # ---- the step

    def scale(self, var: Any) -> Any:
        """``var`` times the scale. Raises TypeError for what is no tensor or number."""
        if not isinstance(var, Tensor):
            raise TypeError(f"GradScaler.scale(): argument 'var' must be a Tensor, got {var!r:.60}")
        if not self._enable:
            return var
        state = self._captured_state(var)
        if state is None:
            return var * self._scale
        return var * on_mesh(mesh_of(var), state.scale).astype(var.dtype)

    def _captured_state(self, beside: Tensor | None = None) -> ScaleState | None:
        """The tensors to compute with while a step is being captured, new ones on the mesh of ``beside``, on one of all
        ranks where that lacks some; None where it runs at once, on their numbers."""
        if active_tracer() is None:
            if self._state is not None:
                self._scale, self._incr_count, self._decr_count = self._state.numbers()
            return None
        if self._state is None:
            mesh = None if beside is None else full_mesh(mesh_of(beside))
            with suspend_layers():
                self._state = ScaleState(self._scale, self._incr_count, self._decr_count, mesh)
        return self._state

    def _write_state(self) -> None:
        if self._state is not None:
            self._state.set(self._scale, self._incr_count, self._decr_count)

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of the optimizer's parameters by the scale, once before its step (for clipping).

        Raises RuntimeError when called twice before :meth:`update`.
        """
        if not self._enable:
            return
        if id(optimizer) in self._unscaled:
            raise RuntimeError("unscale_() was already called for this optimizer since the last update()")
        self._unscaled.add(id(optimizer))
        with no_grad():
            pairs = [(p, p.grad) for p in optimizer._parameter_list if not p.stop_gradient and p.grad is not None]
            grads: list[Any] = [grad for _, grad in pairs]
            state = self._captured_state(next(iter(grads), None))
            if state is not None:
                self._capture_unscale(state, [(grad, optimizer._lay_out(p, grad)) for p, grad in pairs])
                return
            for grad in grads:
                write(grad, grad * (1.0 / self._scale))
            self._found_inf = self._found_inf or not self._finite(grads)

    def _capture_unscale(self, state: ScaleState, grads: Sequence[tuple[Any, Any]]) -> None:
        """Of gradients, and of the same laid out as the update will have them, so that they move once."""
        inverse = {mesh_of(state.scale): state.scale.reciprocal()}
        for grad, laid in grads:
            mesh = mesh_of(laid)
            if mesh not in inverse:
                inverse[mesh] = on_mesh(mesh, state.scale.reciprocal())
            write(grad, laid * inverse[mesh].astype(grad.dtype))
        found = any_overflow([grad for grad, _ in grads])
        if found is not None:
            self._found_inf = found if self._found_inf is False else self._found_inf.logical_or(found)

    def _finite(self, grads: Sequence[Any]) -> bool:
        return all(bool(grad.isfinite().all()) for grad in grads)

    @validate_call
    def step(self, optimizer: Any) -> None:
        """Unscale (unless done), and let ``optimizer`` step unless a gradient is infinite or NaN."""
        if not hasattr(optimizer, "step"):
            raise TypeError(f"GradScaler.step(): argument 'optimizer' must be an Optimizer, got {optimizer!r:.60}")
        if not self._enable:
            optimizer.step()
            return
        if id(optimizer) not in self._unscaled:
            self.unscale_(optimizer)
        if self._captured_state() is not None and self._found_inf is not False:
            step_unless(self._found_inf, optimizer)
        elif not self._found_inf:
            optimizer.step()

    def update(self) -> None:
        """Adapt the scale to whether gradients overflowed since the last call."""
        state = self._captured_state()
        if state is not None and self._dynamic and self._found_inf is not False:
            factors = self._incr_ratio, self._decr_ratio
            state.adapt(self._found_inf, *factors, self._incr_every, self._decr_every)
        elif self._dynamic:
            if self._found_inf:
                self._shrink()
            else:
                self._grow()
            self._write_state()
        self._found_inf = False
        self._unscaled.clear()

    def _shrink(self) -> None:
        self._incr_count, self._decr_count = 0, self._decr_count + 1
        if self._decr_count >= self._decr_every:
            self._scale, self._decr_count = max(self._scale * self._decr_ratio, 1.0), 0

    def _grow(self) -> None:
        self._incr_count, self._decr_count = self._incr_count + 1, 0
        if self._incr_count >= self._incr_every:
            self._scale, self._incr_count = self._scale * self._incr_ratio, 0

    def minimize(self, optimizer: Any, *args: Any, **kwargs: Any) -> tuple[list[Any], list[Any]]:
        """:meth:`step` and :meth:`update`, after ``loss.backward()`` of a scaled loss, the first of the arguments of
        ``Optimizer.minimize``; its others are ignored. Raises TypeError for a loss that is no tensor."""
        if not hasattr(optimizer, "_parameter_list"):
            raise TypeError(f"GradScaler.minimize(): argument 'optimizer' must be an Optimizer, got {optimizer!r:.60}")
        loss = args[0] if args else kwargs.get("loss")
        if not isinstance(loss, Tensor):
            raise TypeError(f"GradScaler.minimize(): argument 'loss' must be a Tensor, got {loss!r:.60}")
        pairs = [(p, p.grad) for p in optimizer._parameter_list if not p.stop_gradient and p.grad is not None]
        self.step(optimizer)
        self.update()
        return [], pairs

    # ---- settings

    def is_enable(self) -> bool:
        """Whether anything is scaled."""
        return self._enable

    def is_use_dynamic_loss_scaling(self) -> bool:
        """Whether the scale adapts."""
        return self._dynamic

    def get_init_loss_scaling(self) -> float:
        """The scale at the beginning."""
        return self._init_scale

    @validate_call
    def set_init_loss_scaling(self, new_init_loss_scaling: float) -> None:
        """Begin anew with this scale."""
        self._init_scale = self._scale = float(new_init_loss_scaling)
        self._write_state()

    def get_incr_ratio(self) -> float:
        """By what the scale grows."""
        return self._incr_ratio

    @validate_call
    def set_incr_ratio(self, new_incr_ratio: float) -> None:
        """Raises ValueError unless above 1."""
        if not new_incr_ratio > 1.0:
            raise ValueError(f"incr_ratio must be above 1, got {new_incr_ratio!r}")
        self._incr_ratio = float(new_incr_ratio)

    def get_decr_ratio(self) -> float:
        """By what the scale shrinks."""
        return self._decr_ratio

    @validate_call
    def set_decr_ratio(self, new_decr_ratio: float) -> None:
        """Raises ValueError unless between 0 and 1."""
        if not 0.0 < new_decr_ratio < 1.0:
            raise ValueError(f"decr_ratio must be between 0 and 1, got {new_decr_ratio!r}")
        self._decr_ratio = float(new_decr_ratio)

    def get_incr_every_n_steps(self) -> int:
        """After how many steps without overflow the scale grows."""
        return self._incr_every

    @validate_call
    def set_incr_every_n_steps(self, new_incr_every_n_steps: int) -> None:
        """Raises ValueError unless positive."""
        self._incr_every = _check_positive("incr_every_n_steps", new_incr_every_n_steps)

    def get_decr_every_n_nan_or_inf(self) -> int:
        """After how many overflows in a row the scale shrinks."""
        return self._decr_every

    @validate_call
    def set_decr_every_n_nan_or_inf(self, new_decr_every_n_nan_or_inf: int) -> None:
        """Raises ValueError unless positive."""
        self._decr_every = _check_positive("decr_every_n_nan_or_inf", new_decr_every_n_nan_or_inf)

    # ---- checkpoints

    def state_dict(self) -> dict[str, Any]:
        """Scale (an array [1]), settings and counts; empty when disabled."""
        if not self._enable:
            return {}
        self._captured_state()
        settings = {name: getattr(self, f"get_{name}")() for name in _SETTINGS}
        counts = {"incr_count": self._incr_count, "decr_count": self._decr_count}
        scale = np.array([self._scale], np.float32)
        return {"scale": scale, **settings, **counts, "use_dynamic_loss_scaling": self._dynamic}

    @validate_call
    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Put back what :meth:`state_dict` gave. Raises ValueError naming missing entries, RuntimeError where there are
        none at all."""
        if not self._enable:
            return
        if not state_dict:
            raise RuntimeError("GradScaler.load_state_dict(): the state dict is empty: a disabled scaler has saved it")
        missing = [key for key in self.state_dict() if key not in state_dict]
        if missing:
            raise ValueError(f"GradScaler.load_state_dict(): the state dict lacks {missing}")
        scale = state_dict["scale"]
        self.set_init_loss_scaling(float(scale.item() if hasattr(scale, "item") else scale))
        for name in _SETTINGS:
            getattr(self, f"set_{name}")(state_dict[name])
        self._incr_count, self._decr_count = int(state_dict["incr_count"]), int(state_dict["decr_count"])
        self._dynamic = bool(state_dict["use_dynamic_loss_scaling"])
        self._write_state()

    set_state_dict = load_state_dict


def _check_positive(name: str, value: int) -> int:
    if not value >= 1:
        raise ValueError(f"{name} must be at least 1, got {value!r}")
    return int(value)
