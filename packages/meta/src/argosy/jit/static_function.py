"""A function that is captured once for each kind of call and then runs as one native call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, ClassVar

from argosy.jit import lowering
from argosy.jit.arguments import Call, flatten
from argosy.jit.automatic_sizes import AutomaticSizes, SizeHistories, no_comparisons
from argosy.jit.captures import MANY, WRITES, CaptureRefusal, FunctionCaptures, SplitFunction
from argosy.jit.compiled import CompiledCall
from argosy.jit.conversion.source import rewritten_source
from argosy.jit.conversion.split import is_quiet
from argosy.jit.fast_path import MISS, Route, is_plain_eager, is_plain_no_grad, route
from argosy.jit.guards import FOLLOWED, watch
from argosy.jit.input_spec import InputSpec
from argosy.jit.methods import captured_method
from argosy.jit.tracing import FinishedCall
from argosy_phi_ops.capture.tracer import active_tracer
from argosy_phi_ops.context import AMBIENT
from argosy_phi_ops.errors import FOREIGN, CaptureError, CompileError, UnsupportedSizes

__all__ = ["CaptureRefusal", "enabled"]

_ROUTES = 4  # short ways that are tried


def _specs(given: Any) -> list[Any]:
    if not isinstance(given, (list, tuple)):
        raise TypeError(f"to_static(): argument 'input_spec' must be a list or tuple of InputSpec, got {given!r:.80}")
    return list(given)


class _Switch:
    """Whether captured functions run captured; see ``enable_to_static``."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = True


enabled = _Switch()


class StaticFunction(FunctionCaptures):
    """What ``to_static`` makes of a function. Calling it captures, compiles, or finds what is compiled already.

    Attributes of use: ``compiled`` (the captures so far, newest last), ``parts_compiled`` (those of the parts of a
    function whose graph broke), ``rollback()`` (the plain function).
    """

    opens_sizes: ClassVar[bool] = True
    """Whether sizes that vary become open by themselves, see `automatic_sizes`."""
    cut: ClassVar[Callable[[Any, set[int], dict[str, Any]], SplitFunction] | None] = None
    """Makes the parts of a function; the module `parts`, which builds on this one, puts itself here."""

    def __init__(
        self,
        function: Callable[..., Any],
        input_spec: Sequence[InputSpec] | None = None,
        backend: lowering.Backend = "CINN",
        full_graph: bool | None = None,
    ) -> None:
        super().__init__(function, None if input_spec is None else _specs(input_spec), backend, full_graph)
        self.__wrapped__ = function
        self.__doc__ = function.__doc__
        self._routes: list[Route] = []
        self._quiet_routes: list[Route] = []  # under no_grad()
        self._histories = SizeHistories() if self._spec is None and self.opens_sizes else None
        self._slotted: dict[int, StaticFunction] = {}  # those of instances without attributes of their own

    def __get__(self, instance: Any, cls: type | None = None) -> Any:
        """As a method: one captured function for each instance."""
        if instance is None:
            return self
        return captured_method(self, instance, self._slotted, lambda: self._bind(instance, cls))

    def _bind(self, instance: Any, cls: type | None) -> StaticFunction:
        return StaticFunction(self._function.__get__(instance, cls), self._spec, self._backend, self._full_graph)

    def __repr__(self) -> str:
        calls = self.compiled
        parts = f", in {len(self._pieces.compiled)} compiled parts" if self._pieces is not None else ""
        captures = f"{len(calls)} capture{'' if len(calls) == 1 else 's'}" if calls else "not captured yet"
        return f"<StaticFunction {self.__name__}: {captures}{parts}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> StaticFunction:
        """A captured function of the copied function, with no captures yet."""
        return StaticFunction(deepcopy(self._function, memo), self._spec, self._backend, self._full_graph)

    def rollback(self) -> Callable[..., Any]:
        """The function as it was before."""
        return self._function

    @property
    def _captured_function(self) -> Callable[..., Any]:
        """What runs where a capture of another function reaches this one."""
        return self._function

    @property
    def code(self) -> str:
        """The function as ``full_graph=True`` captures it, with its control flow rewritten, as source text."""
        return rewritten_source(self._function)

    @property
    def main_program(self) -> Any:
        """The program of the newest capture, as it was compiled. Raises RuntimeError before the first call."""
        if not self.compiled:
            raise RuntimeError(f"{self.__name__} has not been captured yet: call it first")
        return self.compiled[-1].program

    def newest_specs(self) -> list[InputSpec] | None:
        """The tensors of the newest call that was captured, with an open size where their first axes are one, a batch;
        None where there was none, or numbers and sizes are inputs, too."""
        if not self.compiled or self.compiled[-1].runtime or self.compiled[-1].value_sizes:
            return None
        types = [value.type for value in self.compiled[-1].program.inputs]
        batch = {t.shape[:1] for t in types}
        sizes = [(-1 if i == 0 and len(batch) == 1 else n for i, n in enumerate(t.shape)) for t in types]
        return [
            InputSpec([n if isinstance(n, int) else None for n in s], t.dtype)
            for s, t in zip(sizes, types, strict=True)
        ]

    # ---- calling

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the compiled program for these arguments, capturing it first when there is none."""
        if not kwargs and enabled.on:
            for known in self._routes if is_plain_eager() else self._quiet_routes if is_plain_no_grad() else ():
                result = known(args)
                if result is not MISS:
                    return result
        return self._call(args, kwargs)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not enabled.on:
            return self._function(*args, **kwargs)
        if AMBIENT.word and (tracer := active_tracer()) is not None:
            function = self._function if tracer.callee is None else tracer.callee(self._function)
            return function(*args, **kwargs)
        call = flatten(args, kwargs)
        key = self._key(call)
        if len(self._known) > MANY:
            self._use(key)
        for compiled in self._by_key.get(key, ()):
            if compiled.valid(call):
                if compiled.route is None and not kwargs and self._spec is None:
                    self._open_route(compiled, args)
                return self._run(compiled, call, args, kwargs)
        if key in self._plain:
            return self._in_pieces()(*args, **kwargs)
        if self._histories is not None and (sizes := self._histories.sizes(call, key)) is not None:
            result = self._call_for_all_sizes(args, kwargs, call, key, sizes)
            if result is not MISS:
                return result
        try:
            made = self._capture(args, kwargs, call, key)
        except CaptureRefusal:
            self._run_plain(key)
            return self._function(*args, **kwargs)
        return made.result if isinstance(made, FinishedCall) else self._run(made, call, args, kwargs)

    def _call_for_all_sizes(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], call: Call, key: Any, sizes: AutomaticSizes
    ) -> Any:
        """The result of the program with symbols for ``sizes``; MISS where it has no meaning at those of the call, or
        there is none."""
        assert self._histories is not None
        made: CompiledCall | FinishedCall | None
        made = next((compiled for compiled in self._by_key.get(sizes, ()) if compiled.valid(call)), None)
        self._use(sizes)
        if made is None:
            try:
                made = self._capture_for_all_sizes(args, kwargs, call, sizes)
            except (*FOREIGN, CaptureError, CompileError, CaptureRefusal):
                self._histories.refuse(key)
                return MISS
        if isinstance(made, FinishedCall):
            self._histories.refuse(key)
            return made.result
        if made.sizes is not None and not made.sizes.hold(call):
            return MISS
        try:
            return made(call)
        except UnsupportedSizes:
            return MISS

    def _capture_for_all_sizes(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], call: Call, sizes: AutomaticSizes
    ) -> CompiledCall | FinishedCall:
        """Capture with symbols for ``sizes``. Where that fails, the function runs a second time, which nobody may
        notice."""
        if not self._is_quiet((*args, *kwargs.values())):
            raise CaptureRefusal
        with no_comparisons():
            return self._capture(args, kwargs, call, sizes, sizes=sizes)

    def _is_quiet(self, args: tuple[Any, ...]) -> bool:
        """Whether no function of the user's that may be called changes Python objects."""
        functions = watch(self._function, args).functions
        return len(functions) < FOLLOWED and all(map(is_quiet, functions))

    def _run(self, compiled: CompiledCall, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Execute a program; where it has no meaning at the sizes of the call, another one with these as numbers."""
        if self._sizes is None and not compiled.value_sizes:
            return compiled(call)
        if compiled.sizes is None or compiled.sizes.hold(call):
            try:
                return compiled(call)
            except UnsupportedSizes:
                if not self._note_refusal(compiled, call):
                    raise
        else:
            self._note_refusal(compiled, call)
        return self._call(args, kwargs)

    def _note_refusal(self, compiled: CompiledCall, call: Call) -> bool:
        """Note that a program has no meaning at the sizes of a call. Whether such calls have another one now."""
        if self._sizes is not None and self._sizes.note_refusal(call):
            return True
        key = self._key(call)
        if not compiled.value_sizes or key in self._by_number:
            return False
        self._by_number.add(key)
        self._by_key.pop(key, None)
        return True

    def _in_pieces(self) -> Callable[..., Any]:
        """The function with compiled parts around the lines where its graph broke, or as it is."""
        if not self._lines or self.cut is None:
            return self._function
        if self._pieces is None:
            self._pieces = type(self).cut(self._function, set(self._lines), {"backend": self._backend})  # type: ignore[misc]
        return self._pieces.run

    @property
    def parts_compiled(self) -> list[CompiledCall]:
        """The programs of the parts around graph breaks so far."""
        return [] if self._pieces is None else self._pieces.compiled

    def _open_route(self, compiled: CompiledCall, args: tuple[Any, ...]) -> None:
        """Let later calls like this one take the short way; the latest ones are kept."""
        quiet = not is_plain_eager()
        if quiet and not is_plain_no_grad():
            return
        made = route(compiled, args)
        compiled.route = made or False
        if made is not None and quiet:
            self._quiet_routes = [made, *self._quiet_routes[: _ROUTES - 1]]
        elif made is not None:
            self._routes = [made, *self._routes[: _ROUTES - 1]]

    def prepare(self, *args: Any, **kwargs: Any) -> tuple[CompiledCall, Call]:
        """Capture and compile for these arguments without running; returns what would be called, and with what.

        Raises NotImplementedError where such a call runs as plain Python, and where the graph would break.
        """
        call = flatten(args, kwargs)
        key = call.key if self._sizes is None else self._sizes.key(call)
        try:
            made = self._capture(args, kwargs, call, key, whole=True)
        except CaptureRefusal:
            raise NotImplementedError(
                f"{self.__name__} is trained from outside and writes to {WRITES}: such a function runs operator by "
                "operator. Take the whole training step instead"
            ) from None
        assert isinstance(made, CompiledCall)  # a whole capture never breaks
        return made, made.add_carried(call)
