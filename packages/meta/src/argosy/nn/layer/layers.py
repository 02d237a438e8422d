"""``Layer``: parameters, buffers and sublayers under names, and a forward function with hooks around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

from argosy.argument_checks import CheckedConstructor, annotate_error, check_keywords
from argosy.framework.creation import make_parameter
from argosy.framework.param_attr import as_param_attr
from argosy.nn import state, traversal
from argosy.nn.conversions import Conversions
from argosy.nn.hooks import CHANGES, HookHandle, Hooks
from argosy.nn.internals import Internals
from argosy_phi_ops.capture.tracer import active_tracer
from argosy_phi_ops.context import AMBIENT
from argosy_tensorcore import naming
from argosy_tensorcore.dtype import as_dtype, default_dtype
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.suggestions import MissingAttribute
from argosy_tensorcore.tensor import Tensor

__all__ = ["HookRemoveHelper", "Layer"]

HookRemoveHelper = HookHandle
"""Paddle's name."""

_snakes: dict[str, str] = {}
_OWN = ("_parameters", "_buffers", "_sub_layers")


def _snake(name: str) -> str:
    """``LayerNorm`` as ``layer_norm``: how Paddle names layers after their class."""
    found = _snakes.get(name)
    if found is None:
        import re

        split = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
        found = _snakes[name] = re.sub("([a-z])([A-Z])", r"\1_\2", split).lower()
    return found


def in_declarative_mode() -> bool:
    """Whether operators are recorded, not run at once: what libraries ask where they must not read values."""
    return active_tracer() is not None


def _captured_forward(layer: Layer) -> Callable[..., Any]:
    """The layer's ``forward``, as the capture that is going on wants it."""
    tracer = active_tracer()
    return layer.forward if tracer is None or tracer.callee is None else tracer.callee(layer.forward)


class Layer(CheckedConstructor, Conversions, Internals):
    """The base of everything in ``nn``: subclass it, make sublayers and parameters in ``__init__``, write
    ``forward``.

    Attributes that are parameters, layers or (registered) buffers are kept in ``_parameters``, ``_sub_layers`` and
    ``_buffers`` in the order they were set, and found as attributes all the same.
    """

    training: bool
    _device: object = None  # where its parameters are made; None: where new tensors are
    _name: str | None = None  # of an operation of a static program in Paddle; subclasses of its layers read it

    def __init__(self, name_scope: str | None = None, dtype: object = "float32") -> None:
        own = self.__dict__
        own["training"] = True
        own["_full_name"] = naming.generate(name_scope or _snake(type(self).__name__))
        if dtype == "float32":  # as in Paddle the default gives way to set_default_dtype
            dtype = default_dtype()
        own["_dtype"] = as_dtype(dtype).name if dtype is not None else None
        own["_parameters"] = {}
        own["_buffers"] = {}
        own["_non_persistable_buffer_names_set"] = set()
        own["_sub_layers"] = {}
        own["_forward_pre_hooks"] = Hooks()
        own["_forward_post_hooks"] = Hooks()
        own["_state_dict_hooks"] = Hooks()
        if type(self)._build_once is not Internals._build_once:
            own["_forward_pre_hooks"].add(self._before_first_call, False, True)

    @property
    def _helper(self) -> Any:
        """What layers written like Paddle's own ask for default types and parameters."""
        from argosy.framework.layer_helper import LayerHelper

        return LayerHelper(self._full_name)

    # ---- calling

    def backward(self, *inputs: Any) -> Any:
        """There is none to write: gradients follow from ``forward``. Raises ValueError, as in Paddle."""
        raise ValueError(f"{type(self).__name__}: a Layer has no backward(); call backward() of the loss")

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the layer computes; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward()")

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        """``forward`` with the hooks around it."""
        own = self.__dict__
        forward = _captured_forward(self) if AMBIENT.word else self.forward
        if not own["_forward_pre_hooks"] and not own["_forward_post_hooks"]:
            if kwargs:
                check_keywords(type(self).__name__, type(self).forward, kwargs)
            try:
                return forward(*inputs, **kwargs) if kwargs else forward(*inputs)
            except Exception as error:
                annotate_error(type(self).__name__, type(self).forward, inputs, kwargs, error, 1)
                raise
        after = own["_forward_post_hooks"]
        try:
            inputs, kwargs = own["_forward_pre_hooks"].run_before(self, inputs, kwargs)
            check_keywords(type(self).__name__, type(self).forward, kwargs)
            outputs = forward(*inputs, **kwargs)
        except Exception as error:
            after.run_always(self, inputs, kwargs, None, list(after))
            annotate_error(type(self).__name__, type(self).forward, inputs, kwargs, error, 1)
            raise
        return after.run_after(self, inputs, kwargs, outputs)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Call ``hook(layer, inputs)`` before ``forward``; what it returns (unless None) replaces the inputs."""
        return self._forward_pre_hooks.add(hook, prepend, with_kwargs)  # type: ignore[no-any-return]

    def register_forward_post_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> HookHandle:
        """Call ``hook(layer, inputs, outputs)`` after ``forward``; what it returns (unless None) replaces the
        outputs. With ``always_call`` also when something raised, then with the outputs so far, or None.
        """
        return self._forward_post_hooks.add(hook, prepend, with_kwargs, always_call)  # type: ignore[no-any-return]

    register_forward_hook = register_forward_post_hook

    # ---- attributes

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for kind in _OWN:
            held = own.get(kind)
            if held is not None and name in held:
                return held[name]
        if "_parameters" not in own:
            raise AttributeError(
                f"{type(self).__name__} has no {name!r} yet: call super().__init__() first in __init__"
            )
        raise MissingAttribute(f"{type(self).__name__} has no attribute {name!r}", name, lambda: dir(self))

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if type(value) is Tensor and value.is_parameter:
            self._put("_parameters", name, value)
        elif isinstance(value, Layer):
            self._put("_sub_layers", name, value)
        elif "_parameters" not in own:
            object.__setattr__(self, name, value)
        elif name in own["_parameters"]:
            if value is not None:
                raise TypeError(
                    f"{name!r} is a parameter of {type(self).__name__}; assign a parameter or None, not {value!r}"
                )
            own["_parameters"][name] = None
        elif name in own["_buffers"]:
            self._set_buffer(name, value)
        elif name in own["_sub_layers"]:
            if value is not None:
                raise TypeError(f"{name!r} is a layer of {type(self).__name__}; assign a layer or None, not {value!r}")
            own["_sub_layers"][name] = None
        elif type(value) is Tensor and not value.payload.is_traced:  # a buffer, as in Paddle; only registered are saved
            self._put("_buffers", name, value)
            self._non_persistable_buffer_names_set.add(name)
        else:
            CHANGES.count += name == "forward"
            object.__setattr__(self, name, value)

    def _put(self, kind: str, name: str, value: Any) -> None:
        own = self.__dict__
        if kind not in own:
            raise RuntimeError(f"call super().__init__() of {type(self).__name__} before assigning {name!r}")
        for other in _OWN:
            if other != kind:
                own[other].pop(name, None)
        own.pop(name, None)
        own[kind][name] = value

    def _set_buffer(self, name: str, value: Any) -> None:
        if value is not None and type(value) is not Tensor:
            raise TypeError(f"{name!r} is a buffer of {type(self).__name__}; assign a Tensor or None, not {value!r}")
        self._buffers[name] = value

    def __delattr__(self, name: str) -> None:
        for kind in _OWN:
            if name in self.__dict__.get(kind, ()):
                del self.__dict__[kind][name]
                self._non_persistable_buffer_names_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        own = self.__dict__
        return sorted({*super().__dir__(), *own["_parameters"], *own["_buffers"], *own["_sub_layers"]})

    # ---- making parts

    def create_parameter(
        self,
        shape: Sequence[int],
        attr: object = None,
        dtype: object = None,
        is_bias: bool = False,
        default_initializer: Callable[..., Any] | None = None,
        device: object = None,
    ) -> Any:
        """A parameter named after the layer, on ``device``, by default that of the layer; None when ``attr`` is False.
        By default XavierUniform, for a bias zeros. Raises DeviceNotFound for a device that is not there.
        """
        chosen, place = as_param_attr(attr), device if device is not None else self._device
        if chosen is None:
            return None
        kind = dtype or self._dtype
        return make_parameter(self._full_name, shape, chosen, kind, is_bias, default_initializer, place)

    def create_variable(self, name: str | None = None, persistable: bool | None = None, dtype: object = None) -> Tensor:
        """:meth:`create_tensor`, by its older name."""
        return self.create_tensor(name, persistable, dtype)

    def create_tensor(self, name: str | None = None, persistable: bool | None = None, dtype: object = None) -> Tensor:
        """An empty tensor [0] named after the layer; ``persistable`` marks one that outlives a step."""
        made = Tensor._wrap(StridedArray.empty((0,), as_dtype(dtype or self._dtype or "float32")))
        made.name = naming.generate(f"{self._full_name}.{name or '_generated_var'}")
        made.persistable = bool(persistable)
        return made

    def add_parameter(self, name: str, parameter: Tensor | None) -> Tensor | None:
        """Register ``parameter`` (or None, for none) under ``name``. Raises TypeError when it is no parameter."""
        self._check_name(name, "_parameters")
        if parameter is not None and not (type(parameter) is Tensor and parameter.is_parameter):
            raise TypeError(f"add_parameter({name!r}) takes a parameter or None, not {type(parameter).__name__}")
        self._parameters[name] = parameter
        return parameter

    def register_parameter(self, name: str, param: Tensor | None) -> None:
        """:meth:`add_parameter`."""
        self.add_parameter(name, param)

    def add_sublayer(self, name: str, sublayer: Layer) -> Layer:
        """Register ``sublayer`` under ``name``. Raises TypeError when it is no Layer, or ``name`` no string."""
        if not isinstance(name, str):
            raise TypeError(f"add_sublayer(): argument 'name' must be a string, got {name!r:.60}")
        if not isinstance(sublayer, Layer) and sublayer is not None:
            raise TypeError(f"add_sublayer({name!r}) takes a Layer, not {type(sublayer).__name__}")
        self._sub_layers[str(name)] = sublayer
        return sublayer

    def add_module(self, name: str, module: Layer) -> None:
        """:meth:`add_sublayer`."""
        self.add_sublayer(name, module)

    register_module = add_module

    def set_sublayer(self, target: str, layer: Layer, strict: bool = False) -> None:
        """Put ``layer`` in the place of the dotted name ``target``; with ``strict`` there must be a layer already.

        Raises ValueError for an empty name, AttributeError naming the part that is missing.
        """
        way, _, name = target.rpartition(".")
        if not name:
            raise ValueError(f"set_sublayer: {target!r} names no layer")
        owner = self.get_sublayer(way) if way else self
        if strict and not isinstance(owner._sub_layers.get(name), Layer):
            raise AttributeError(f"{type(owner).__name__} has no layer {name!r}")
        owner.add_sublayer(name, layer)

    set_submodule = set_sublayer

    def register_buffer(self, name: str, tensor: Tensor | None, persistable: bool = True) -> None:
        """Register a tensor that is no parameter; in the state dict when ``persistable``."""
        self._check_name(name, "_buffers")
        if tensor is not None and type(tensor) is not Tensor:
            raise TypeError(f"register_buffer({name!r}) takes a Tensor or None, not {type(tensor).__name__}")
        self._buffers[name] = tensor
        if persistable:
            self._non_persistable_buffer_names_set.discard(name)
        else:
            self._non_persistable_buffer_names_set.add(name)
        if tensor is not None:
            tensor.persistable = persistable

    def _check_name(self, name: str, kind: str) -> None:
        if not isinstance(name, str) or not name or "." in name:
            raise ValueError(f"a name within a layer is a non-empty string without dots, not {name!r}")
        if hasattr(self, name) and name not in self.__dict__[kind]:
            raise KeyError(f"{type(self).__name__} already has an attribute {name!r}")

    # ---- walking

    def parameters(self, include_sublayers: bool = True) -> list[Tensor]:
        """All parameters, each once."""
        return [p for _, p in self.named_parameters(include_sublayers=include_sublayers)]

    def named_parameters(
        self, prefix: str = "", include_sublayers: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Pairs (dotted name, parameter)."""
        return traversal.named_members(self, "_parameters", prefix, include_sublayers, remove_duplicate)

    def buffers(self, include_sublayers: bool = True) -> list[Tensor]:
        """All buffers, each once."""
        return [b for _, b in self.named_buffers(include_sublayers=include_sublayers)]

    def named_buffers(
        self, prefix: str = "", include_sublayers: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Pairs (dotted name, buffer)."""
        return traversal.named_members(self, "_buffers", prefix, include_sublayers, remove_duplicate)

    def children(self) -> Iterator[Layer]:
        """Direct sublayers, each once."""
        return (layer for _, layer in self.named_children())

    def named_children(self) -> Iterator[tuple[str, Layer]]:
        """Pairs (name, direct sublayer)."""
        return traversal.named_children(self)

    def sublayers(self, include_self: bool = False) -> list[Layer]:
        """All layers below this one, depth first."""
        return [layer for _, layer in self.named_sublayers(include_self=include_self)]

    def named_sublayers(
        self,
        prefix: str = "",
        include_self: bool = False,
        layers_set: set[Layer] | None = None,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Layer]]:
        """Pairs (dotted name, layer) of all layers below this one, depth first."""
        return traversal.named_layers(self, prefix, include_self, layers_set, remove_duplicate)

    def modules(self) -> list[Layer]:
        """This layer and all below it."""
        return self.sublayers(include_self=True)

    def named_modules(
        self, memo: set[Layer] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Layer]]:
        """Pairs (dotted name, layer) of this layer and all below it."""
        return traversal.named_layers(self, prefix, True, memo, remove_duplicate)

    def get_sublayer(self, target: str) -> Layer:
        """The layer of that dotted name. Raises AttributeError naming the part that is missing."""
        return traversal.find_layer(self, target)  # type: ignore[no-any-return]

    get_submodule = get_sublayer

    def get_parameter(self, target: str) -> Tensor:
        """The parameter of that dotted name. Raises AttributeError when there is none."""
        return traversal.find_member(self, target, "_parameters")  # type: ignore[no-any-return]

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of that dotted name. Raises AttributeError when there is none."""
        return traversal.find_member(self, target, "_buffers")  # type: ignore[no-any-return]

    def apply(self, fn: Callable[[Layer], Any]) -> Self:
        """Call ``fn`` on every layer below, then on this one."""
        if not callable(fn):
            raise TypeError(f"{type(self).__name__}.apply(): argument 'fn' must be a function, got {fn!r:.80}")
        for layer in self.children():
            layer.apply(fn)
        fn(self)
        return self

    def full_name(self) -> str:
        """The unique name, ``linear_0``."""
        return self._full_name  # type: ignore[no-any-return]

    # ---- modes, conversion, gradients

    def train(self, mode: bool = True) -> Self:
        """Put this layer and all below it in training mode."""
        for layer in self.sublayers(include_self=True):
            layer.training = mode
        return self

    def eval(self) -> Self:
        """Put this layer and all below it in evaluation mode."""
        # not train(False): subclasses override train, often without a mode
        for layer in self.sublayers(include_self=True):
            layer.training = False
        return self

    def clear_gradients(self, set_to_zero: bool = True) -> None:
        """Forget the gradients of all parameters."""
        for p in self.parameters():
            if not p.stop_gradient:
                p.clear_gradient(set_to_zero)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters."""
        self.clear_gradients(not set_to_none)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether all parameters want gradients."""
        for p in self.parameters():
            p.stop_gradient = not requires_grad
        return self

    # ---- state

    def state_dict(
        self,
        destination: dict[str, Tensor] | None = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
        use_hook: bool = True,
        keep_vars: bool = True,
    ) -> dict[str, Tensor]:
        """Parameters and persistable buffers by dotted name: own parameters, own buffers, then sublayers in order.

        The tensors are the layer's own, not copies; with ``keep_vars=False`` they are detached.
        """
        return self._state_dict_impl(
            destination, include_sublayers, structured_name_prefix, use_hook=use_hook, keep_vars=keep_vars
        )

    def to_static_state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Tensor]:
        """The same as :meth:`state_dict`."""
        return self.state_dict(*args, **kwargs)

    def register_state_dict_hook(self, hook: Callable[[dict[str, Tensor]], Any]) -> HookHandle:
        """Call ``hook(state_dict)`` before :meth:`state_dict` returns; what it returns (unless None) replaces it."""
        return self._state_dict_hooks.add(hook, False, False)  # type: ignore[no-any-return]

    def set_state_dict(
        self, state_dict: Mapping[str, Any], use_structured_name: bool = True
    ) -> tuple[list[str], list[str]]:
        """Copy values of ``state_dict`` into parameters and buffers of the same name and shape.

        Returns (missing, unexpected) names and warns about both; a name of another shape stands in both, as in
        Paddle.
        """
        return state.restore(self, state_dict, use_structured_name)

    set_dict = load_dict = set_state_dict

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> tuple[list[str], list[str]]:
        """:meth:`set_state_dict` that raises RuntimeError about missing, unexpected and misshaped names when
        ``strict``. With ``assign`` the layer's tensors take over the storage and dtype of the given ones.
        """
        if strict:
            state.check(self, state_dict)
        return state.restore(self, state_dict, True, state.take_over if assign else state.copy_into)

    def get_extra_state(self) -> Any:
        """What a subclass keeps in the state dict beside tensors. Raises RuntimeError where it does not say."""
        raise RuntimeError(f"{type(self).__name__} does not define get_extra_state()")

    def sharded_state_dict(self, structured_name_prefix: str = "") -> dict[str, Tensor]:
        """The state dict under names with the prefix: tensors that are sharded come as they are."""
        return self.state_dict(structured_name_prefix=structured_name_prefix)

    def full(self, aoa_config: dict[str, Any] | None = None, **kwargs: Any) -> Iterator[tuple[str, Tensor]]:
        """Pairs (name, whole tensor) of the state: sharded tensors are gathered one by one.

        Raises NotImplementedError for ``aoa_config``, which would rename and cut tensors on the way.
        """
        if aoa_config is not None:
            raise NotImplementedError("Layer.full(aoa_config=...) is not implemented")
        for name, tensor in self.state_dict().items():
            yield name, tensor if getattr(tensor.payload, "layout", None) is None else state.gather(tensor)

    # ---- showing

    def extra_repr(self) -> str:
        """What stands between the parentheses of the layer's repr; subclasses define it."""
        return ""

    def __repr__(self) -> str:
        return traversal.describe(self)

    def _repr_html_(self) -> str:
        from argosy.notebook.pages import layer_html  # in notebooks alone

        return layer_html(self)
