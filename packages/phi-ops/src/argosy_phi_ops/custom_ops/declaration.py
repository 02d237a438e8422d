"""``custom_op``: how users declare operators of their own.

::

    @custom_op("mylib.scale")
    def scale(x: Tensor, factor: float = 2.0) -> Tensor:
        '''``x * factor``.'''
        return x * factor  # numpy arrays

    @scale.types
    def _(x, factor):
        return x  # one TensorType, or a (shape, dtype); this is also the default

    @scale.gradient
    def _(g, result, x, factor):
        return g * factor  # tensors

The operator is then one like all others: eager, captured, compiled (a host call), sharded (on whole tensors, or along
the ``axes`` it declares) and differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from argosy_phi_ops.custom_ops.gradients import Forward, array_gradient, tensor_gradient
from argosy_phi_ops.custom_ops.host_functions import HOSTS, HostFunction
from argosy_phi_ops.custom_ops.tracing import inline_function
from argosy_phi_ops.declare.operator import OPERATORS, Operator
from argosy_phi_ops.errors import OperatorError
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir.types import TensorType
from argosy_tensorcore.dtype import DType, as_dtype

__all__ = ["CustomOperator", "custom_op"]

_OPERANDS = {
    "Tensor": "Tensor", "ndarray": "Tensor", "Array": "Tensor", "Tensor | None": "Tensor | None",
    "ndarray | None": "Tensor | None", "Optional[Tensor]": "Tensor | None", "Sequence[Tensor]": "Sequence[Tensor]",
    "list[Tensor]": "Sequence[Tensor]", "List[Tensor]": "Sequence[Tensor]", "list[ndarray]": "Sequence[Tensor]",
}  # fmt: skip


class _Body:
    """A user's function as the body of an operator: its annotations in the words that operators read."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.__name__ = name
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__qualname__ = function.__qualname__
        self.__code__ = function.__code__
        self.__defaults__ = function.__defaults__
        self.__kwdefaults__ = function.__kwdefaults__
        self.__annotations__ = _annotations(name, function)
        self.run: Callable[..., Any] = function

    def __call__(self, **arguments: Any) -> Any:
        return self.run(**arguments)


def _annotations(name: str, function: Callable[..., Any]) -> dict[str, str]:
    """The annotations as text. Raises :class:`OperatorError` for a parameter without one, and for ``*args``."""
    code, notes = function.__code__, function.__annotations__
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    missing = [p for p in parameters if p not in notes]
    if missing or code.co_flags & 0x0C:
        what = f"parameter {missing[0]!r} has no annotation" if missing else "it takes *args or **kwargs"
        raise OperatorError(
            f"custom operator {name}: {what}; every parameter is annotated as Tensor, Tensor | None or "
            "Sequence[Tensor] (operands) or as plain data (attributes), e.g. x: Tensor, factor: float"
        )
    return {p: _annotation(notes[p]) for p in (*parameters, *(["return"] if "return" in notes else []))}


def _annotation(note: Any) -> str:
    text = note if isinstance(note, str) else note.__name__ if isinstance(note, type) else str(note)
    if text.startswith(("list", "List", "Sequence")) and not isinstance(note, str):
        text = str(note)
    for prefix in ("typing.", "collections.abc.", "argosy_tensorcore.tensor.", "argosy.", "paddle.", "numpy.", "np."):
        text = text.replace(prefix, "")
    return _OPERANDS.get(text, text)


class CustomOperator(Operator):
    """An operator declared by a user; :meth:`types` and :meth:`gradient` complete it."""

    def __init__(self, name: str, function: Callable[..., Any], axes: str, on_tensors: bool) -> None:
        body = _Body(name, function)
        super().__init__(body)
        self.host: HostFunction | None = None
        self._rule: Callable[..., Any] | None = None
        self._function = function
        if on_tensors:
            body.run = self._inline
            return
        self.host = HostFunction(name, self._run, self._types, axes)
        body.run = self._call_host
        self.kernel = self._run_eagerly

    def types(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: the type rule, called like the operator with a ``TensorType`` (``shape``, ``dtype``) for each
        tensor. It returns a ``TensorType`` or a pair ``(shape, dtype)``, or a list of them for several results.

        Without a rule there is one result, of the type of the first operand. Sizes may be symbolic; a rule that
        raises refuses the operands.
        """
        self._host("types")
        self._rule = rule
        return rule

    def gradient(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: ``function(g, result, *operands, **attributes)`` on tensors returns the gradient of each operand,
        None where there is none; with several results ``g`` and ``result`` are tuples.

        It is captured, so that it may call operators (custom ones, too) and be differentiated again.
        """
        self._host("gradient").cotangents = tensor_gradient(self._forward(), function)
        return function

    def gradient_on_arrays(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: like :meth:`gradient`, but on numpy arrays, a host function like the operator's body. There are
        no gradients of the gradient then.
        """
        self._host("gradient").cotangents = array_gradient(self._forward(), function)
        return function

    def _host(self, what: str) -> HostFunction:
        if self.host is None:
            raise OperatorError(f"custom operator {self.name} is written on tensors: its {what} follows from its body")
        return self.host

    def _forward(self) -> Forward:
        assert self.host is not None
        return Forward(self.host, self.signature)

    # The host function

    def _run(self, arrays: Sequence[Any], arguments: Mapping[str, Any]) -> Any:
        return self._function(**self.signature.regroup(arrays, dict(arguments)))

    def _types(self, types: Sequence[TensorType], arguments: Mapping[str, Any]) -> tuple[TensorType, ...]:
        if self._rule is None:
            if not types:
                raise OperatorError(f"{self.name}: an operator without operands needs a type rule (@{self.name}.types)")
            return (types[0],)
        made = self._rule(**self.signature.regroup(types, dict(arguments)))
        found = made if isinstance(made, (tuple, list)) and not _is_pair(made) else [made]
        return tuple(_as_type(self.name, each) for each in found)

    def _run_eagerly(self, *arrays: Any, **given: Any) -> Any:
        """The eager kernel: called with arrays and attributes, or with everything by name (see ``dispatch``)."""
        assert self.host is not None
        operands, arguments = (arrays, given) if arrays else self._flatten_arguments(given)
        results = self.host.run(operands, arguments)
        return results[0] if len(results) == 1 else tuple(results)

    def _call_host(self, **given: Any) -> Any:
        operands, arguments = self._flatten_arguments(given)
        return PRIMITIVES["host_call"](*operands, function=self.name, arguments=arguments)

    def _inline(self, **given: Any) -> Any:
        """The body of an operator on tensors, at IR values."""
        operands, arguments = self._flatten_arguments(given)
        bare = False

        def run(tensors: list[Any]) -> Sequence[Any]:
            nonlocal bare
            made = self._function(**self.signature.regroup(tensors, arguments))
            bare = not isinstance(made, (tuple, list))
            return [made] if bare else list(made)

        results = inline_function(self.name, run, operands)
        if any(r is None for r in results):
            raise OperatorError(f"{self.name}: its body returned None among {len(results)} results")
        return results[0] if bare else tuple(results)

    def _flatten_arguments(self, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Operands in a row, and attributes, from arguments by name: what :meth:`Signature.regroup` undoes."""
        operands: list[Any] = []
        segments: list[int] = []
        for p in self.signature.operands:
            value = given[p.name]
            taken = list(value) if isinstance(value, (list, tuple)) else [] if value is None else [value]
            segments.append(-1 if value is None else len(taken))
            operands += taken
        arguments = {p.name: given[p.name] for p in self.signature.attributes}
        if self.signature.segmented:
            arguments["segments"] = tuple(segments)
        return operands, arguments


def _is_pair(made: Sequence[Any]) -> bool:
    return len(made) == 2 and isinstance(made[1], (str, DType, type))


def _as_type(name: str, made: Any) -> TensorType:
    if isinstance(made, TensorType):
        return made
    if isinstance(made, (tuple, list)) and _is_pair(made):
        return TensorType(tuple(made[0]), as_dtype(made[1]).name)
    raise OperatorError(
        f"{name}: its type rule returned {made!r}; expected a TensorType, or a pair of shape and dtype, for each result"
    )


def custom_op(name: str, *, axes: str = "", on_tensors: bool = False) -> Callable[[Callable[..., Any]], CustomOperator]:
    """Decorator: declare the operator ``name`` (``"namespace.operator"``) by a function.

    Args:
        name: how programs name the operator. A process that runs such a program declares it, too, under this name.
        axes: along which axes it can be split over devices, in the notation of `declare.axes`, such as
            ``"b n -> b n"``, or ``"b !n -> b n"`` where an element of the result needs the whole row. Without it every
            rank computes on whole tensors. The type rule is then called with the sizes of a part, too.
        on_tensors: the body is written with tensors (captured; gradient, sharding and compiled code follow from it)
            instead of numpy arrays.

    Parameters annotated as ``Tensor``, ``Tensor | None`` and ``Sequence[Tensor]`` are operands, others plain data. A
    body on arrays gets C-contiguous arrays that it must not write, returns new ones, and is pure: it may be called
    again, or not at all where nobody needs its results. Through cffi a C function takes
    ``ffi.from_buffer("float[]", x)``.

    Raises:
        OperatorError: for a name without namespace, one that another function has, parameters without annotation.
    """
    namespace, dot, last = name.partition(".")
    if not dot or not namespace.isidentifier() or not last.isidentifier():
        raise OperatorError(f"a custom operator is named 'namespace.operator', got {name!r}")

    def declare(function: Callable[..., Any]) -> CustomOperator:
        if not hasattr(function, "__qualname__"):
            raise OperatorError(f"custom_op({name!r}) declares a function, got {type(function).__name__}")
        first = OPERATORS.get(name)
        if first is not None and _place(first.body) != _place(function):
            raise OperatorError(f"custom operator {name} is declared twice: {_place(first.body)}, {_place(function)}")
        made = CustomOperator(name, function, axes, on_tensors)
        OPERATORS[name] = made  # anew where a module is reloaded or a cell run again
        if made.host is not None:
            HOSTS[name] = made.host
        return made

    return declare


def _place(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"
