"""The eager tape: backward, grad, accumulation, hooks, versions, modes."""

from __future__ import annotations

import gc
from threading import Thread

import numpy as np
import pytest

import argosy_autograd as ag
from argosy_autograd.errors import DifferentiationError, UnusedInput
from argosy_phi_ops import get_operator
from argosy_tensorcore.tensor import Tensor


def leaf(data, dtype="float64"):
    return Tensor(np.asarray(data, dtype), stop_gradient=False)


def values(tensor):
    return tensor.numpy().tolist()


def test_gradients_accumulate_in_leaves():
    """Two passes add up; a leaf used twice gets both shares; broadcasting sums."""
    x, b = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([1.0, 1.0])
    for _ in range(2):
        (x * x + b).sum().backward()
    assert values(x.grad) == [[4.0, 8.0], [12.0, 16.0]]
    assert values(b.grad) == [4.0, 4.0]
    assert not x.grad.stop_gradient


def test_gradients_share_no_memory():
    """Leaves that get the same gradient, and the seed, stay apart; what nobody else holds is not copied."""
    x, y, seed = leaf([1.0, 2.0]), leaf([3.0, 4.0]), Tensor(np.array([1.0, 1.0]))
    (x + y).backward(seed)
    arrays = [t.payload.ndarray for t in (x.grad, y.grad, seed)]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])
    kept = []
    z = leaf([1.0, 2.0])
    w = z * 2.0
    w.register_hook(lambda g: kept.append(g))
    w.backward()
    assert not np.shares_memory(kept[0].payload.ndarray, z.grad.payload.ndarray)


def test_backward_of_a_tensor_with_axes_starts_from_ones():
    """No scalar is needed; an explicit seed weights."""
    x = leaf([1.0, 2.0])
    (x * 3.0).backward()
    (x * x).backward(Tensor(np.array([1.0, 10.0])))
    assert values(x.grad) == [5.0, 43.0]


def test_second_backward_needs_retain_graph():
    """The graph is freed by the first pass unless it is retained."""
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert values(x.grad) == [4.0, 8.0]
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.backward()


def test_in_place_changes_of_saved_tensors_are_noticed():
    """A saved operand that was changed in place makes backward fail, naming the operator; others may change."""
    x = leaf([1.0, 2.0])
    y = x + 1.0
    z = y * y
    y.add_(1.0)
    with pytest.raises(RuntimeError, match=r"multiply.*changed in place"):
        z.sum().backward()
    y = x + 1.0
    z = y + y  # nothing of y is read again
    y.add_(1.0)
    z.sum().backward()
    assert values(x.grad) == [2.0, 2.0]


def test_in_place_results_carry_their_history():
    """After y.multiply_(x) the gradient goes through both."""
    x = leaf([1.0, 2.0])
    y = x * 2.0
    y.multiply_(Tensor(np.array([3.0, 5.0])))
    y.sum().backward()
    assert values(x.grad) == [6.0, 10.0]


def test_leaves_that_want_gradients_refuse_in_place_changes():
    """Unless recording is off, as in an optimizer."""
    x = leaf([1.0])
    with pytest.raises(ValueError, match="in place"):
        x.add_(1.0)
    with ag.no_grad():
        x.add_(1.0)
    assert values(x) == [2.0]


def test_grad_leaves_slots_alone_and_gives_a_list():
    """Gradients of intermediate tensors and leaves; .grad stays empty."""
    x = leaf([1.0, 2.0])
    y = x * x
    z = (y * y).sum()
    gx, gy = ag.grad(z, [x, y])
    assert values(gx) == [4.0, 32.0]
    assert values(gy) == [2.0, 8.0]
    assert x.grad is None
    assert gx.stop_gradient


def test_an_output_may_be_an_input():
    """Its gradient is its seed; an input given twice gets its gradient twice."""
    x = leaf([1.0, 2.0])
    y = x * 3.0
    assert [values(g) for g in ag.grad(y, [y, x, x])] == [[1.0, 1.0], [3.0, 3.0], [3.0, 3.0]]
    assert values(ag.grad(x, x)[0]) == [1.0, 1.0]


def test_threads_have_graphs_of_their_own():
    """Backward passes of several threads do not disturb each other."""

    def work(number, found):
        x = leaf([float(number)])
        for _ in range(20):
            (x * x).sum().backward()
        found[number] = values(x.grad)[0]

    found = {}
    threads = [Thread(target=work, args=(i, found)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {i: 40.0 * i for i in range(4)}


def test_unused_inputs_raise_or_give_none():
    """An input that plays no part is an error unless allowed; so is a stopped one."""
    x, other = leaf([1.0]), leaf([1.0])
    with pytest.raises(UnusedInput, match="input 1"):
        ag.grad((x * x).sum(), [x, other])
    first, second = ag.grad((x * x).sum(), [x, other], allow_unused=True)
    assert second is None
    assert values(first) == [2.0]


def test_no_grad_vars_are_constants():
    """The gradient does not go through them."""
    x = leaf([3.0])
    y = x * x
    (g,) = ag.grad((y * x).sum(), x, no_grad_vars=y)
    assert values(g) == [9.0]


def test_gradients_of_gradients_to_any_order():
    """Each pass with create_graph can be differentiated again: d^n x^5, of which the fifth is a constant."""
    x = leaf([2.0])
    y = x * x * x * x * x
    found = []
    for _ in range(5):
        (y,) = ag.grad(y, x, create_graph=True)
        found.append(values(y)[0])
    assert found == [80.0, 160.0, 240.0, 240.0, 120.0]
    assert values(ag.grad(y, x)[0]) == [0.0]


def test_derivatives_that_are_zero_are_zeros():
    """floor is reached but flat: its gradient is zeros, not None."""
    x = leaf([1.5])
    x.floor().sum().backward()
    assert values(x.grad) == [0.0]


def test_clear_grad_zeroes_and_clear_gradient_may_drop():
    """Zeroing keeps the tensor that others may hold."""
    x = leaf([1.0])
    (x * 2.0).sum().backward()
    held = x.grad
    x.clear_grad()
    assert x.grad is held
    assert values(held) == [0.0]
    x.clear_gradient(set_to_zero=False)
    assert x.grad is None


def test_the_symbolic_zero_becomes_a_tensor_when_read():
    """Captured code may leave it in the slot; it has no memory until it is looked at."""
    x = leaf([1.0, 2.0])
    x._grad = ag.symbolic_zero(x)
    assert ag.is_symbolic_zero(x.grad)
    assert values(x.grad) == [0.0, 0.0]
    assert not ag.is_symbolic_zero(x.grad)
    x._grad = ag.symbolic_zero(x)
    (x * 2.0).sum().backward()
    assert values(x.grad) == [2.0, 2.0]


def test_hooks_see_and_replace_gradients():
    """A hook on an intermediate tensor changes what goes on; one on a leaf gets the sum; both can be removed."""
    x = leaf([1.0, 1.0])
    seen = []
    y = x * 2.0
    y.register_hook(lambda g: g * 10.0)
    handle = x.register_hook(lambda g: seen.append(values(g)))
    (y + x).sum().backward()
    assert seen == [[21.0, 21.0]]
    assert values(x.grad) == [21.0, 21.0]
    assert handle.remove()
    assert not handle.remove()
    (x * 1.0).sum().backward()
    assert len(seen) == 1


def test_grad_calls_no_hooks_of_the_leaves_it_is_asked_for():
    """As in Paddle; those of tensors on the way are called."""
    x = leaf([1.0, 1.0])
    x.register_hook(lambda g: g * 10.0)
    y = x * x
    y.register_hook(lambda g: g * 3.0)
    assert values(ag.grad(y.sum(), x)[0]) == [6.0, 6.0]


def test_retain_grads_keeps_those_of_intermediate_tensors():
    """Without it .grad of what is no leaf stays None."""
    x = leaf([1.0])
    y = x * 2.0
    z = y * 3.0
    y.retain_grads()
    z.sum().backward()
    assert values(y.grad) == [3.0]
    assert z.grad is None


def test_modes_nest_and_decorate():
    """no_grad, enable_grad and set_grad_enabled as contexts and decorators."""
    x = leaf([1.0])

    @ag.no_grad()
    def silent():
        return x * 2.0

    @ag.no_grad
    def generator():
        yield (x * 2.0).stop_gradient

    with ag.no_grad():
        assert not ag.is_grad_enabled()
        with ag.enable_grad():
            assert not (x * 2.0).stop_gradient
        with ag.set_grad_enabled(True):
            assert ag.is_grad_enabled()
    assert silent().stop_gradient
    assert list(generator()) == [True]
    assert ag.is_grad_enabled()
    with ag.inference_mode():
        assert (x * 2.0).stop_gradient


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        (np.ones(2, "float32"), TypeError, "unpack_hook should return a Tensor, got ndarray"),
        (Tensor([1.0, 2.0, 3.0]), ValueError, r"what was packed, float32 \[2\], got float32 \[3\]"),
    ],
)
def test_what_an_unpack_hook_gives_is_like_what_was_packed(given, kind, said):
    """Another thing, or a tensor of another shape, is an error that says so."""
    x = Tensor([1.0, 2.0], stop_gradient=False)
    with ag.saved_tensors_hooks(lambda t: None, lambda _: given):
        y = x * x
    with pytest.raises(kind, match=said):
        y.backward(Tensor([1.0, 1.0]))


def test_saved_tensors_hooks_pack_and_unpack():
    """What is kept goes through the pair of functions."""
    x = leaf([1.0, 2.0])
    packed = []

    def pack(tensor):
        packed.append(tensor.numpy())
        return len(packed) - 1

    with ag.saved_tensors_hooks(pack, lambda i: Tensor(packed[i])):
        y = (x * x).sum()
    y.backward()
    assert packed
    assert values(x.grad) == [2.0, 4.0]


def test_pylayer_has_a_derivative_of_its_own():
    """forward is not recorded; backward is, with create_graph."""

    class Cube(ag.PyLayer):
        @staticmethod
        def forward(ctx, x, power):
            ctx.save_for_backward(x)
            ctx.power = power
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensor()
            return g * x * x * float(ctx.power)

    x = leaf([2.0])
    y = Cube.apply(x, 3)
    (g,) = ag.grad(y, x, create_graph=True)
    assert values(g) == [12.0]
    (gg,) = ag.grad(g, x)
    assert values(gg) == [12.0]
    Cube.apply(x, 3).backward()
    assert values(x.grad) == [12.0]


def test_pylayer_with_several_results_gets_zeros_for_unused_ones():
    """Gradients are materialised unless told otherwise; non-differentiable results stop."""

    class Split(ag.PyLayer):
        @staticmethod
        def forward(ctx, x, y):
            return x * 1.0, y * 1.0

        @staticmethod
        def backward(ctx, g, h):
            return g, h

    x, y = leaf([1.0]), leaf([1.0])
    first, _ = Split.apply(x, y)
    first.backward()
    assert values(x.grad) == [1.0]
    assert values(y.grad) == [0.0]


def test_wrong_number_of_gradients_names_the_pylayer():
    """The error says what was expected."""

    class Bad(ag.PyLayer):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, g):
            return g, g, g

    with pytest.raises(DifferentiationError, match=r"Bad\.backward gave 3"):
        Bad.apply(leaf([1.0]), leaf([1.0])).backward()


def test_a_deep_graph_needs_no_recursion():
    """Backward and destruction are iterative."""
    x = leaf([1.0])
    y = x
    for _ in range(50_000):
        y = y + 1.0
    y.backward()
    assert values(x.grad) == [1.0]
    for _ in range(50_000):
        y = y + x
    del y
    gc.collect()


def test_promotion_gives_gradients_of_the_operands_dtype():
    """float32 times float64 is float64; each leaf's gradient has its own dtype."""
    x, y = leaf([1.0, 2.0], "float32"), leaf([3.0, 4.0])
    (x * y).sum().backward()
    assert x.grad.dtype.name == "float32"
    assert y.grad.dtype.name == "float64"


def test_complex_gradients_are_conjugate_wirtinger():
    """d|z|/dz = z / |z|."""
    z = leaf([3 + 4j], "complex128")
    z.abs().sum().backward()
    assert values(z.grad) == [0.6 + 0.8j]


def test_ties_share_and_kinks_are_flat():
    """Equal maxima share the gradient; relu and abs are flat at zero."""
    x = leaf([1.0, 1.0, 0.0])
    x.max().backward()
    assert values(x.grad) == [0.5, 0.5, 0.0]
    z = leaf([0.0])
    (get_operator("relu")(z) + z.abs()).sum().backward()
    assert values(z.grad) == [0.0]
    a, b = leaf([1.0]), leaf([1.0])
    get_operator("maximum")(a, b).sum().backward()
    assert (values(a.grad), values(b.grad)) == ([0.5], [0.5])


def test_results_of_data_dependent_size_have_gradients():
    """A selection by mask is recorded as the gather that it turned out to be: of every order, with broadcasting."""
    x = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    mask = Tensor(np.array([True, False, True]))
    y = get_operator("masked_select")(x * x, mask)
    (g,) = ag.grad((y * y).sum(), x, create_graph=True)
    assert values(g) == [[4.0, 0.0, 108.0], [256.0, 0.0, 864.0]]
    (h,) = ag.grad(g.sum(), x)
    assert values(h) == [[12.0, 0.0, 108.0], [192.0, 0.0, 432.0]]
    w = leaf([1.0, 2.0, 3.0])
    counts = get_operator("bincount")(Tensor(np.array([2, 0, 2])), w)
    (counts * counts).sum().backward()
    assert values(w.grad) == [8.0, 4.0, 8.0]


def test_backward_of_a_constant_does_nothing():
    """Nothing wants a gradient: nothing gets one, and there is no error, as in Paddle."""
    x = Tensor(np.ones(2))
    x.sum().backward()
    ag.backward([x * 2, x])
    assert x.grad is None


def test_a_mode_can_be_cloned():
    """A clone switches recording as the original does, by itself."""
    from argosy_autograd import is_grad_enabled, no_grad

    mode = no_grad()
    with mode, mode.clone():
        assert not is_grad_enabled()
    assert is_grad_enabled()


def test_a_pylayer_has_its_contexts_methods():
    """Paddle's names are on the class itself, too."""
    from argosy_autograd import PyLayer, PyLayerContext

    assert PyLayer.save_for_backward is PyLayerContext.save_for_backward
    assert issubclass(PyLayer, PyLayerContext)


def test_the_results_of_unique_are_constants():
    """As in Paddle: what is computed with them gives its other operands gradients alone."""
    x, w = leaf([3.0, 1.0, 3.0]), leaf([1.0, 2.0])
    found, counts = get_operator("unique")(x, return_counts=True)
    assert found.stop_gradient
    assert values(counts) == [1, 2]
    (found * w).sum().backward()
    assert x.grad is None
    assert values(w.grad) == [1.0, 3.0]
    with pytest.raises(UnusedInput):
        ag.grad(found.sum(), x)


@pytest.mark.parametrize(
    ("name", "more"),
    [("zeros_like", ()), ("ones_like", ()), ("empty_like", ()), ("full_like", (2.0,)), ("rand_like", ())],
)
def test_what_is_made_like_a_tensor_is_a_constant(name, more):
    """At the first call, and at later ones, which go other ways."""
    x, make = leaf([1.0, 2.0, 2.0]), get_operator(name)
    for _ in range(40):
        made = make(x, *more)
        assert made.stop_gradient
        assert made._node is None
    with pytest.raises(UnusedInput):
        ag.grad((made * leaf([1.0])).sum(), x)


def test_what_is_written_into_zeros_like_a_tensor_has_gradients():
    x = leaf([1.0, 2.0, 3.0])
    made = get_operator("zeros_like")(x)
    made[1] = x[0] * 5.0
    assert not made.stop_gradient
    made.sum().backward()
    assert values(x.grad) == [5.0, 0.0, 0.0]


def test_the_results_of_unique_consecutive_are_constants():
    from argosy_phi_ops.compositions.sets import unique_consecutive

    found, counts = unique_consecutive(leaf([1.0, 2.0, 2.0]), return_counts=True)
    assert found.stop_gradient
    assert (values(found), values(counts)) == ([1.0, 2.0], [1, 2])


def test_data_is_the_memory_of_a_parameter_outside_of_the_graph():
    """As in Paddle: a leaf that wants gradients is changed through it, which the version tells."""
    x = Tensor(np.array([1.0, 2.0]), stop_gradient=False)
    assert x.data is not x
    assert x.data.stop_gradient
    x.data.subtract_(Tensor(np.array([1.0, 1.0])))
    x.data[0] = 5.0
    np.testing.assert_array_equal(x.numpy(), [5.0, 1.0])
    y = x * x
    x.data.zero_()
    with pytest.raises(DifferentiationError, match="changed in place"):
        y.sum().backward()
