"""Custom operators: a body of numpy, of tensors or in C is an operator in every mode of the framework."""

import traceback

import numpy as np
import pytest
from cffi import FFI

import argosy as paddle
import argosy.distributed as dist
from argosy import Tensor
from argosy.distributed.debug import run_ranks
from argosy.library import OperatorError, ShapeError, custom_op
from argosy_autograd import check_grads, jvp
from argosy_autograd.errors import MissingRule
from argosy_hwadapt import device
from argosy_infer import Predictor
from argosy_phi_ops.capture.tracer import Tracer
from argosy_phi_ops.compiler import get_compiler
from argosy_phi_ops.custom_ops.host_functions import HOSTS
from argosy_phi_ops.declare.operator import OPERATORS
from argosy_phi_ops.dialect import DIALECT
from argosy_phi_ops.passes.decompose import Decompose
from argosy_pir import Program
from argosy_pir.types import TensorType


@custom_op("testlib.damped", axes="... -> ...")
def damped(x: Tensor, rate: float = 0.5) -> Tensor:
    """``sin(x) exp(-rate x)``."""
    return np.sin(x) * np.exp(-x.dtype.type(rate) * x)


@damped.gradient
def _(g, result, x, rate):
    return g * paddle.cos(x) * paddle.exp(-rate * x) - g * result * rate


@custom_op("testlib.row_norm", axes="b !n -> b n, b")
def row_norm(x: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of length one, and the lengths they had."""
    lengths = np.sqrt((x * x).sum(1))
    return x / lengths[:, None], lengths


@row_norm.types
def _(x):
    return x, (x.shape[:1], x.dtype)


@row_norm.gradient_on_arrays
def _(g, result, x):
    unit, lengths = result
    along = (g[0] * unit).sum(1, keepdims=True)
    return (g[0] - along * unit) / lengths[:, None] + g[1][:, None] * unit


@custom_op("testlib.total")
def total(first: Tensor, others: list[Tensor], offset: Tensor | None = None) -> Tensor:
    return sum(others, first) + (0 if offset is None else offset)


@total.gradient
def _(g, result, first, others, offset):
    return g, [g * 1 for _ in others], None if offset is None else g


@custom_op("testlib.silu", on_tensors=True)
def silu(x: Tensor, slope: float = 1.0) -> Tensor:
    return x * paddle.nn.functional.sigmoid(x * slope)


X = np.random.default_rng(0).standard_normal((4, 6)).astype("float32")


def _tensor(array=X):
    return paddle.to_tensor(array, stop_gradient=False)


def _damped(x, rate=0.5):
    return np.sin(x) * np.exp(-rate * x)


def test_eager_value_and_gradients_of_every_order():
    """The body gives the value; the gradient is differentiated again."""
    np.testing.assert_allclose(damped(_tensor(), rate=0.25).numpy(), _damped(X, 0.25), rtol=1e-5)
    assert damped(x=_tensor()).shape == [4, 6]
    check_grads(lambda x: damped(x, 0.25), [_tensor(X[:2, :3].astype("float64"))], order=2)
    check_grads(lambda x: silu(x, 2.0), [_tensor(X[:2, :3].astype("float64"))], order=2)


def test_several_results_lists_and_missing_operands():
    """Operands may be lists and absent, results a tuple; gradients come for each."""
    check_grads(
        lambda x: row_norm(x)[0] * paddle.cos(row_norm(x)[1]).unsqueeze(1), [_tensor(X.astype("float64"))], order=1
    )
    x, y, z = (_tensor(X + i) for i in range(3))
    np.testing.assert_allclose(total(x, [y, z]).numpy(), 3 * X + 3, rtol=1e-6)
    total(x, [y, y], z).sum().backward()
    assert [t.grad.numpy().mean() for t in (x, y, z)] == [1, 2, 1]
    total(x, [y]).sum().backward()
    assert x.grad.numpy().mean() == 2


@pytest.mark.parametrize("operator", [damped, silu], ids=lambda op: op.name)
def test_captured_and_compiled_it_computes_and_trains_the_same(operator):
    """to_static gives eager's value and gradient, for known and for symbolic sizes."""
    eager = _tensor()
    value = operator(eager * 2).sum()
    value.backward()
    for spec in (None, [paddle.static.InputSpec([None, 6], "float32")]):
        static = paddle.jit.to_static(lambda x: operator(x * 2).sum(), input_spec=spec, full_graph=True)
        x = _tensor()
        got = static(x)
        got.backward()
        np.testing.assert_allclose(got.numpy(), value.numpy(), rtol=1e-5)
        np.testing.assert_allclose(x.grad.numpy(), eager.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_a_compiled_program_counts_the_host_calls():
    """report() tells how often a compiled program leaves native code."""
    with Tracer() as tracer:
        x = tracer.input(TensorType((2, 3), "float32"))
        program = tracer.finish([damped(damped(x) + 1)]).program
    assert get_compiler("cinn").compile(program, device("cpu")).report()["host_calls"] == {"prim.host_call": 2}


def test_in_a_loop_of_a_compiled_program():
    """A host call works in the body of captured control flow."""

    def program(x, n):
        while n > 0:
            x = damped(x)
            n = n - 1
        return x

    x, n = _tensor(), paddle.to_tensor(3)
    with paddle.no_grad():
        expected = _damped(_damped(_damped(X)))
        np.testing.assert_allclose(paddle.jit.to_static(program)(x, n).numpy(), expected, rtol=1e-4, atol=1e-6)


def test_forward_mode_is_the_transpose_of_the_gradient():
    """jvp of the operator equals the difference quotient."""
    x, v = paddle.to_tensor(X.astype("float64")), paddle.to_tensor(np.cos(X).astype("float64"))
    _, tangent = jvp(damped, x, v)
    step = 1e-6
    quotient = (damped(x + step * v) - damped(x - step * v)) / (2 * step)
    np.testing.assert_allclose(tangent.numpy(), quotient.numpy(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("operator", [damped, lambda x: row_norm(x)[0], silu, lambda x: total(x, [x])])
@pytest.mark.parametrize("placement", [dist.Shard(0), dist.Shard(1), dist.Replicate(), dist.Partial()], ids=str)
def test_sharded_values_and_gradients_do_not_depend_on_the_placement(operator, placement):
    """Two ranks compute what one does, eagerly and compiled; declared axes stay split."""
    alone = _tensor()
    value = operator(alone)
    (value * value).sum().backward()

    def program():
        mesh = dist.ProcessMesh([0, 1], ["x"])

        def step(x):
            y = operator(x)
            (y * y).sum().backward()
            return y.detach()

        for run in (step, paddle.jit.to_static(step, full_graph=True)):
            x = dist.shard_tensor(X, mesh, [placement], stop_gradient=False)
            y = run(x)
            np.testing.assert_allclose(y.numpy(), value.numpy(), rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(x.grad.numpy(), alone.grad.numpy(), rtol=1e-4, atol=1e-5)
        return [str(p) for p in operator(x).placements], str(placement)

    (placements, given), _ = run_ranks(program, 2)
    if operator is damped and "Shard" in given:
        assert placements == [given]


def test_exported_programs_hold_the_name_and_run_where_it_is_declared(tmp_path):
    """A saved program runs in a process that declares the operator, and says what is missing in one that does not."""

    class Net(paddle.nn.Layer):
        def forward(self, x):
            return damped(x, 0.25) + 1

    paddle.jit.save(Net(), str(tmp_path / "net"), input_spec=[paddle.static.InputSpec([4, 6], "float32")])
    np.testing.assert_allclose(Predictor(str(tmp_path / "net")).run(X)[0], _damped(X, 0.25) + 1, rtol=1e-5)
    held = OPERATORS.pop("testlib.damped"), HOSTS.pop("testlib.damped")
    try:
        with pytest.raises((OperatorError, RuntimeError), match=r"'testlib.damped'.*import the module that declares"):
            Predictor(str(tmp_path / "net")).run(X)
    finally:
        OPERATORS["testlib.damped"], HOSTS["testlib.damped"] = held


def test_an_exported_custom_operator_that_is_not_declared_is_named_on_loading(tmp_path):
    """A fresh process that loads the program hears which operator it lacks, and what to do."""

    @custom_op("testlib.passing", axes="... -> ...")
    def passing(x: Tensor) -> Tensor:
        return x * 2

    class Net(paddle.nn.Layer):
        def forward(self, x):
            return passing(x)

    paddle.jit.save(Net(), str(tmp_path / "net"), input_spec=[paddle.static.InputSpec([2], "float32")])
    del DIALECT.ops["phi.testlib.passing"], OPERATORS["testlib.passing"]
    with pytest.raises(ValueError, match=r"'testlib.passing' is a custom operator: import the module that declares"):
        paddle.jit.load(str(tmp_path / "net"))


def test_program_text_round_trips():
    """The name, the arguments and the types of a host call survive printing and parsing."""
    with Tracer("p") as tracer:
        program = tracer.finish([damped(tracer.input(TensorType((2, 3), "float32")), 0.25)]).program
    assert str(Program.parse(str(program))) == str(program)
    Decompose().run(program)
    assert "prim.host_call" in str(program)
    again = Program.parse(str(program))
    again.verify()
    assert str(again) == str(program)


def test_a_c_function_through_cffi_is_a_body():
    """cffi hands the arrays' memory to C."""
    ffi = FFI()
    ffi.cdef("double hypot(double x, double y); void *memcpy(void *to, const void *from, size_t n);")
    c = ffi.dlopen(None)

    @custom_op("testlib.copied")
    def copied(x: Tensor) -> Tensor:
        result = np.empty_like(x)
        c.memcpy(ffi.from_buffer(result), ffi.from_buffer(x), x.nbytes)
        return result

    x = paddle.to_tensor(X)
    np.testing.assert_array_equal(copied(x.t()).numpy(), X.T)
    np.testing.assert_array_equal(paddle.jit.to_static(lambda x: copied(x + 1))(x).numpy(), X + 1)


def _refused(name, body, rule=None):
    operator = custom_op(name)(body)
    if rule is not None:
        operator.types(rule)
    return operator


def test_results_that_break_the_type_rule_are_refused_eagerly_and_compiled():
    """The error names the operator, what its body gave and what its rule says."""
    x = paddle.to_tensor(X)

    def wide(x: Tensor) -> Tensor:
        return x.astype("float64")

    def short(x: Tensor) -> Tensor:
        return x[:1]

    def nothing(x: Tensor) -> Tensor:
        pass

    for body, message in (
        (wide, r"testlib\.wide: result 0 of its body is float64 \[4, 6\], its type rule says .*float32"),
        (short, r"testlib\.short: result 0 of its body is float32 \[1, 6\], its type rule says"),
        (nothing, r"testlib\.nothing: its body returned None"),
    ):
        operator = _refused(f"testlib.{body.__name__}", body)
        with pytest.raises(OperatorError, match=message):
            operator(x)
        with pytest.raises(OperatorError, match=message):
            paddle.jit.to_static(lambda x, operator=operator: operator(x) * 2)(x)


def test_a_type_rule_refuses_operands_or_is_refused():
    """What a rule raises reaches the user; a rule that gives no types is named."""

    def square(x: Tensor) -> Tensor:
        return x

    def rule(x):
        if x.shape[0] != x.shape[1]:
            raise ShapeError(f"square takes square matrices, got {list(x.shape)}")
        return x

    operator = _refused("testlib.square", square, rule)
    for run in (operator, paddle.jit.to_static(lambda x: operator(x))):
        with pytest.raises(ShapeError, match=r"square matrices, got \[4, 6\]"):
            run(paddle.to_tensor(X))
    operator.types(lambda x: "float32")
    with pytest.raises(OperatorError, match="type rule returned 'float32'"):
        operator(paddle.to_tensor(X))


def test_an_exception_in_a_body_keeps_the_users_traceback():
    """Eagerly and compiled the exception is the user's own, from the user's line, with a note of the operator."""

    def fails(x: Tensor) -> Tensor:
        return {}["no such key"]

    operator = _refused("testlib.fails", fails)
    for run in (operator, paddle.jit.to_static(lambda x: operator(x))):
        with pytest.raises(KeyError, match="no such key") as caught:
            run(paddle.to_tensor(X))
        assert 'return {}["no such key"]' in "".join(traceback.format_exception(caught.value))
        assert "body of custom operator testlib.fails" in caught.value.__notes__[0]


def test_operands_cannot_be_written_by_a_body():
    """Arrays come read-only, for they are the tensors' own memory."""

    def writes(x: Tensor) -> Tensor:
        x += 1
        return x

    with pytest.raises(ValueError, match="read-only"):
        _refused("testlib.writes", writes)(paddle.to_tensor(X))


def test_gradients_that_do_not_fit_are_refused():
    """Their number, type and sources are checked, and one that is missing is named with the way to give it."""
    x = _tensor()

    def plain(x: Tensor, y: Tensor) -> Tensor:
        return x * y

    operator = _refused("testlib.plain", plain)
    with pytest.raises(MissingRule, match=r"testlib\.plain has none: give it with @plain\.gradient"):
        operator(x, x).sum().backward()
    outside = paddle.to_tensor(X)
    for function, message in (
        (lambda g, result, x, y: g, "returned 1 gradients for 2 operands"),
        (lambda g, result, x, y: (g, g.sum()), r"that of operand 1 has type .* expected float32 \[4, 6\]"),
        (lambda g, result, x, y: (g, 3), "should return tensors .* got int"),
        (lambda g, result, x, y: (g * outside, g), "reads tensors that are none of its arguments"),
    ):
        operator = _refused("testlib.plain", plain)
        operator.gradient(function)
        with pytest.raises((OperatorError, RuntimeError), match=message):
            operator(x, x).sum().backward()
    operator.gradient_on_arrays(lambda g, result, x, y: (g * y, g * x))
    (first,) = paddle.grad(operator(x, x).sum(), x, create_graph=True)
    np.testing.assert_allclose(first.numpy(), 2 * X, rtol=1e-6)
    with pytest.raises(MissingRule, match=r"testlib\.plain is a function on arrays"):
        first.sum().backward()


def test_declarations_that_cannot_work_are_refused():
    """A bare name, a name twice, and parameters that say nothing of themselves."""

    def one(x: Tensor) -> Tensor:
        return x

    def other(x: Tensor) -> Tensor:
        return x

    with pytest.raises(OperatorError, match=r"named 'namespace\.operator', got 'one'"):
        custom_op("one")(one)
    custom_op("testlib.one")(one)
    custom_op("testlib.one")(one)  # the same again: a cell that is run twice
    with pytest.raises(OperatorError, match=r"testlib\.one is declared twice"):
        custom_op("testlib.one")(other)
    with pytest.raises(OperatorError, match="declares a function, got CustomOperator"):
        custom_op("testlib.again")(silu)
    with pytest.raises(OperatorError, match="parameter 'x' has no annotation"):
        custom_op("testlib.bare")(lambda x: x)
    with pytest.raises(OperatorError, match="x: Tensor"):
        custom_op("testlib.star")(lambda *x: x)
    with pytest.raises(OperatorError, match="its types follows from its body"):
        silu.types(lambda x: x)
    with pytest.raises(ShapeError, match=r"testlib\.row_norm.*rank 1"):
        paddle.jit.to_static(lambda x: row_norm(x))(paddle.to_tensor(X[0]))
