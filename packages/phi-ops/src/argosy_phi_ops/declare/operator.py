"""The declaration of an operator: everything about it that users and subsystems need, in one place.

::

    @operator(axes="... -> ...", promote="float")
    def silu(x: Tensor) -> Tensor:
        '''Sigmoid-weighted linear unit ``x * logistic(x)``, elementwise (Elfwing et al., 2018).'''
        return prim.mul(x, prim.logistic(x))

    @silu.reference
    def _(x):
        return x / (1 + np.exp(-x))

The body decomposes the operator: it is called with IR values (promoted by the ``promote`` policy) and writes
primitives, so that shape and dtype rules, derivatives, sharding and compiled code follow from it. ``reference`` is an
optional fast numpy kernel for eager execution; ``samples`` yields inputs for the tests that every operator goes
through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, Protocol

from argosy_phi_ops.declare.aliases import ALIASES
from argosy_phi_ops.declare.index import MODULES
from argosy_phi_ops.declare.signature import ATTRIBUTE, Signature
from argosy_phi_ops.errors import OperatorError
from argosy_phi_ops.extension import evaluator
from argosy_tensorcore.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argosy_phi_ops.declare.expansion import Expansion

__all__ = ["OPERATORS", "Applications", "Operator", "Sample", "find_operator", "get_operator", "operator"]

NO_ATTRIBUTES: dict[str, Any] = {}
"""The attributes of an operator that has none; never changed."""

NO_KEYWORDS: dict[str, Any] = {}

OPERATORS: dict[str, Operator] = {}
"""The operators declared so far; :func:`get_operator` imports what is missing."""


class Applications(Protocol):
    """What calls of an operator go to: ``entry`` those with nothing but tensors, one for each parameter; ``call`` any,
    as operator, arguments and keywords. ``by_key`` are the applications by what they are told apart by,
    ``keep`` adds one."""

    entry: Callable[..., Any]
    call: Callable[..., Any]
    method: Callable[..., Any]
    by_key: dict[Any, Any]

    def keep(self, key: Any, application: Any) -> None:
        """Let an application be found by a key."""


class _NoApplications:
    """The table of an operator that nobody has called: what asks something of it has one made. (Operators have no
    ``__getattr__`` of their own, which would make all their attributes slower.)"""

    def __init__(self, op: Operator) -> None:
        self.op = op

    def __getattr__(self, name: str) -> Any:
        if self.op.applications is self:
            self.op.applications = evaluator().table(self.op)
        return getattr(self.op.applications, name)


class Sample:
    """One call for the tests: positional arguments (arrays, lists of arrays, plain data) and keyword arguments."""

    __slots__ = ("args", "kwargs")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs


class _ShownSignature:
    """The lazy ``__signature__`` of operators: made when ``inspect.signature`` asks for it."""

    def __get__(self, op: Operator | None, owner: type) -> Any:
        if op is None:
            raise AttributeError("__signature__")  # the class itself has that of its constructor
        defaults = import_module("argosy_phi_ops.declare.keywords").DEFAULTS if op.keywords else {}
        extra = {name: defaults[name] for name in op.keywords}
        return op.signature.inspect_signature(op.body.__annotations__, not op.view, extra, op.positional_out)


class Operator:
    """A declared operator. Calling it finds the application that its arguments stand for, and runs that.

    ``applications`` is the table of what it has been applied to, which the evaluator makes that the composition root
    has named (`extension.register_evaluator`).
    """

    __signature__ = _ShownSignature()
    interpreted = False

    def __init__(
        self,
        body: Callable[..., Any],
        *,
        axes: str = "",
        promote: str = "none",
        inplace: bool = False,
        view: bool = False,
        random: bool = False,
        opaque: bool = False,
        constant: bool = False,
        apart: bool = False,
        upcast: bool = False,
        aliases: dict[str, str] | None = None,
        keywords: tuple[str, ...] = (),
        positional_out: bool = False,
        form: Callable[..., Any] | None = None,
        reference: Callable[..., Any] | None = None,
        samples: Callable[..., Iterator[Sample]] | None = None,
    ) -> None:
        self.name = self.__name__ = body.__name__.rstrip("_")
        self.__doc__ = body.__doc__
        self.body = body
        self.axes = axes
        self.promote = promote
        self.inplace = inplace
        self.view = view
        self.random = random
        self.opaque = opaque
        self.constant = constant
        self.apart = apart
        self.upcast = upcast
        self.keywords = keywords
        self.positional_out = positional_out
        self.form = form
        self.signature = Signature(self.name, body, aliases or {}, ("rng", "counter") if random else ())
        self.plain = 0 if self.signature.segmented or self.signature.attributes else len(self.signature.operands)
        self.kernel = reference
        self.choose: Callable[..., Any] | None = None
        self.bounds: Callable[..., Iterator[tuple[Any, ...]]] | None = None
        self.own_bounds: Callable[..., Iterator[tuple[Any, ...]]] | None = None
        self.refusal: tuple[Callable[..., None], tuple[str, ...]] | None = None
        self.sampler = samples
        self.applications: Applications = _NoApplications(self)
        self.kinds = tuple([None if p.kind == ATTRIBUTE else p.kind for p in self.signature.parameters])
        self.places = {p.name: i for i, p in enumerate(self.signature.parameters) if p.name not in keywords}

    def reference(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: the numpy kernel for eager execution, called like the body with (promoted) arrays."""
        self.kernel = kernel
        return kernel

    def specialize(self, choose: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: ``choose(types, attributes)`` gives a quicker kernel for tensors of exactly these
        :class:`~argosy_tensorcore.storage.ArrayType` (which need no promotion), called with their arrays alone, or
        None. Its results are those of the reference kernel up to rounding."""
        self.choose = choose
        return choose

    def check_bounds(self, bounds: Callable[..., Iterator[tuple[Any, ...]]]) -> Callable[..., Any]:
        """Decorator: ``bounds``, called like the kernel, yields arrays of indices, each with the least one allowed, the
        size of the axis that they address and perhaps one index that is allowed besides. Those out of range are
        refused, eagerly and in programs (see `checks.index_checks`): ``bounds`` sees operands without
        elements, too, whose sizes may be symbolic."""
        self.bounds = bounds
        return bounds

    def check_own_bounds(self, bounds: Callable[..., Iterator[tuple[Any, ...]]]) -> Callable[..., Any]:
        """Decorator: :meth:`check_bounds` of an operator whose kernel refuses such indices without being asked to;
        for those who execute it otherwise."""
        self.own_bounds = bounds
        return bounds

    def refuse_values(self, look: Callable[..., None]) -> Callable[..., None]:
        """Decorator: ``look`` raises an :class:`~argosy_phi_ops.errors.OperatorError` for values that eager execution
        refuses. Its parameters are some of the operator's, and ``result``, what the kernel gave."""
        self.refusal = look, look.__code__.co_varnames[: look.__code__.co_argcount]
        return look

    def samples(self, sampler: Callable[..., Iterator[Sample]]) -> Callable[..., Iterator[Sample]]:
        """Decorator: the generator function of test inputs; it gets a ``numpy.random.Generator``."""
        self.sampler = sampler
        return sampler

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the operator to tensors (at the bind point) or to IR values (inlining its body)."""
        if len(args) == self.plain and not kwargs and type(args[0]) is Tensor:
            entry = self.applications.entry
            return entry(args[0]) if self.plain == 1 else entry(*args)
        return self.applications.call(self, args, kwargs)

    def expand(self, operand_types: Sequence[Any], attributes: dict[str, Any]) -> Expansion:
        """The decomposition into primitives for operands of these types, cached. Raises what the body raises."""
        from argosy_phi_ops.declare.expansion import expand

        return expand(self, operand_types, attributes)

    def __repr__(self) -> str:
        return f"<operator {self.name}({', '.join(p.name for p in self.signature.parameters)})>"


def operator(**options: Any) -> Callable[[Callable[..., Any]], Operator]:
    """Decorator: declare the operator whose decomposition the function is.

    Options: ``axes`` (notation of `declare.axes`), ``promote`` (a policy of :mod:`.promotion`), ``inplace``
    (a variant ``name_`` exists), ``view`` (the eager result may share the first operand's memory), ``random`` (the
    body's last parameters ``rng`` and ``counter`` are filled in), ``opaque`` (no decomposition: only the reference
    kernel), ``constant`` (eager results never want gradients: nothing of the operands' values but choices is in them),
    ``apart`` (gradients to some of the results alone have a program of their own: zeros for the others would meet
    slopes that are infinite where these are not asked for), ``upcast`` (floats narrower than float32 are computed in
    float32, and the results rounded once),
    ``aliases`` (other names of parameters), ``keywords`` (those of :mod:`.keywords` that it takes), ``positional_out``
    (``out`` may also come last among the positional arguments), ``form`` (another way to write the call, of
    :mod:`argosy_phi_ops.declare.call_overloads`), ``reference`` and ``samples`` (a kernel and a generator function that
    several operators share; those of one alone follow its body as decorated functions).
    """

    def declare(body: Callable[..., Any]) -> Operator:
        new = Operator(body, **options)
        if new.name in OPERATORS:
            first = OPERATORS[new.name].body.__module__
            raise OperatorError(f"operator {new.name} is declared twice: in {first} and {body.__module__}")
        OPERATORS[new.name] = new
        return new

    return declare


def get_operator(name: str) -> Operator:
    """The operator of that name (or alias), importing its module on first use.

    Raises :class:`OperatorError` for unknown names.
    """
    return _whole.get(name) or _find(name)


_whole: dict[str, Operator] = {}
"""Operators of this package, by name and alias, whose modules have been imported to the end."""


def _find(name: str) -> Operator:
    """The operator with what follows its declaration (samples, kernels): while another thread imports its module, this
    waits. A module that asks for its own operators gets them as they are.
    """
    asked, name = name, ALIASES.get(name, name)
    module = import_module("argosy_phi_ops.ops." + MODULES[name]) if name in MODULES else None
    found = OPERATORS.get(name)
    if found is None:
        hint = ": a custom operator; import the module that declares it with custom_op" if "." in name else ""
        raise OperatorError(f"there is no operator named {name!r}{hint}")
    if module is not None and not getattr(module.__spec__, "_initializing", False):
        _whole[asked] = found
    return found


def find_operator(name: str) -> Operator | None:
    """Like :func:`get_operator`, or None for unknown names."""
    known = name in OPERATORS or name in MODULES or name in ALIASES
    return get_operator(name) if known else None
