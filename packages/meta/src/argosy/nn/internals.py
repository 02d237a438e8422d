"""What subclasses of Paddle's layers take from ``Layer`` beside its public names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from argosy.nn import state
from argosy_autograd.modes import no_grad
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = ["Internals"]

Change = Callable[[Tensor, Any, Any, Any], Tensor]


class Internals:
    """The members of ``Layer`` that begin with an underscore and that libraries read, call or override."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _sub_layers: dict[str, Any]
    _non_persistable_buffer_names_set: set[str]
    children: Any
    _cast_to_low_precision: ClassVar[bool] = True
    """Whether conversions to half precision may take the layer along; libraries switch it off for their own."""

    @property
    def _modules(self) -> dict[str, Any]:
        """Sublayers by name."""
        return self._sub_layers

    @_modules.setter
    def _modules(self, value: dict[str, Any]) -> None:
        if not isinstance(value, dict):
            raise TypeError(f"_modules must be a dict of layers, got {value!r:.80}")
        given = dict(value)
        self._sub_layers.clear()
        self._sub_layers.update(given)

    @property
    def _non_persistent_buffers_set(self) -> set[str]:
        """Names of buffers that the state dict leaves out."""
        return self._non_persistable_buffer_names_set

    @_non_persistent_buffers_set.setter
    def _non_persistent_buffers_set(self, value: set[str]) -> None:
        if not isinstance(value, set):
            raise TypeError(f"_non_persistent_buffers_set must be a set of names, got {value!r:.80}")
        given = set(value)
        self._non_persistable_buffer_names_set.clear()
        self._non_persistable_buffer_names_set.update(given)

    def _get_name(self) -> str:
        """The name of the class."""
        return type(self).__name__

    def _build_once(self, *inputs: Any, **kwargs: Any) -> None:
        """Called with the inputs of the first call, before ``forward``; subclasses make what depends on them."""

    def _before_first_call(self, layer: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The pre-hook of layers that define :meth:`_build_once`."""
        if not self.__dict__.get("_built"):
            self._build_once(*inputs, **kwargs)
            self.__dict__["_built"] = True

    # ---- state

    def _state_dict_impl(
        self,
        destination: dict[str, Tensor] | None = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
        include_non_persistable_buffer: bool = False,
        use_hook: bool = True,
        keep_vars: bool = True,
    ) -> dict[str, Tensor]:
        """What ``state_dict`` gives where no subclass overrides it; with ``include_non_persistable_buffer`` all
        buffers."""
        every = include_non_persistable_buffer
        return state.collect(self, destination, include_sublayers, structured_name_prefix, use_hook, keep_vars, every)

    def _obtain_parameters_buffers(
        self,
        destination: dict[str, Tensor] | None = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
    ) -> dict[str, Tensor]:
        """The state dict without its hooks."""
        return self._state_dict_impl(destination, include_sublayers, structured_name_prefix, use_hook=False)

    # ---- conversion

    def _apply(self, func: Change, device: Any, dtype: Any, blocking: Any, include_sublayers: bool = True) -> None:
        """Call ``func(tensor, device, dtype, blocking)`` on parameters and their gradients, which it changes in place,
        and on buffers, which become what it returns; sublayers first."""
        if include_sublayers:
            for layer in self.children():
                layer._apply(func, device, dtype, blocking, include_sublayers)
        with no_grad():
            for parameter in self._parameters.values():
                for tensor in () if parameter is None else (parameter, parameter.grad):
                    if tensor is not None:
                        func(tensor, device, dtype, blocking)
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = func(buffer, device, dtype, blocking)
        if dtype is not None:
            self.__dict__["_dtype"] = as_dtype(dtype).name

    def _transform(self, t: Tensor, device: Any, dtype: Any, blocking: Any) -> Tensor:
        """``t``, converted in place to ``dtype``; None leaves it as it is."""
        if dtype is not None:
            state.convert(t, as_dtype(dtype))
        return t
