"""Sparse tensors against dense ones: products, convolutions, gradients of both orders, captures, wrong input."""

import numpy as np
import pytest

import argosy as paddle

S = paddle.sparse
F = S.nn.functional
RNG = np.random.default_rng(7)
KINDS = ("coo", "csr")


def thinned(*shape, share=0.4):
    """A dense array of which about this share is not 0."""
    return RNG.standard_normal(shape) * (RNG.random(shape) < share)


def made(array, kind, sparse_dim=None):
    x = paddle.to_tensor(array, stop_gradient=False)
    return x, x.to_sparse_csr() if kind == "csr" else x.to_sparse_coo(sparse_dim or array.ndim)


def agree(found, wanted):
    dense = found.to_dense() if isinstance(found, S.SparseTensor) else found
    np.testing.assert_allclose(dense.numpy(), wanted.numpy(), rtol=1e-10, atol=1e-12)


def gradients(result, leaves):
    """First gradients of a weighted sum, and those of the sum of their squares."""
    dense = result.to_dense() if isinstance(result, S.SparseTensor) else result
    weights = paddle.to_tensor(np.cos(np.arange(dense.size)).reshape(dense.shape))
    first = paddle.grad((dense * dense * weights).sum(), leaves, create_graph=True)
    return [*first, *paddle.grad(sum((g * g).sum() for g in first), leaves)]


def same_gradients(found, wanted, leaves, sparse=()):
    """Equal gradients of both orders; of tensors made sparse at their positions, where alone they are defined."""
    for i, (ours, theirs) in enumerate(zip(gradients(found, leaves), gradients(wanted, leaves), strict=True)):
        kept = leaves[i % len(leaves)].numpy() != 0 if i % len(leaves) in sparse else 1.0
        if i < len(leaves) or not sparse:
            np.testing.assert_allclose(ours.numpy() * kept, theirs.numpy() * kept, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch", [(), (3,)])
def test_products_with_dense_matrices(kind, batch):
    """Values and gradients of both operands are those of the dense product."""
    x, sparse = made(thinned(*batch, 4, 5), kind)
    y = paddle.to_tensor(RNG.standard_normal((*batch, 5, 2)), stop_gradient=False)
    agree(S.matmul(sparse, y), x @ y)
    agree(sparse @ y, x @ y)
    same_gradients(S.matmul(sparse, y), x @ y, [x, y], sparse={0})


def test_second_gradients_through_the_values():
    """With the values as the variable, gradients of both orders are those of the dense product."""
    at = paddle.to_tensor([[0, 2, 1, 2], [1, 0, 3, 1]])
    values = paddle.to_tensor(RNG.standard_normal(4), stop_gradient=False)
    y = paddle.to_tensor(RNG.standard_normal((4, 2)), stop_gradient=False)
    sparse = S.sparse_coo_tensor(at, values, [3, 4], stop_gradient=False)

    def full():
        return paddle.scatter_nd(at.T, values, [3, 4])

    same_gradients(S.matmul(sparse, y), full() @ y, [values, y])
    same_gradients(S.square(S.sin(sparse)), paddle.square(paddle.sin(full())), [values])
    dense = full()
    soft = paddle.where(dense != 0, dense, paddle.full_like(dense, -np.inf))
    agree(F.softmax(sparse), paddle.nn.functional.softmax(soft, -1))


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_and_sums_of_products(kind):
    x, sparse = made(thinned(4, 5), kind)
    y, start = (paddle.to_tensor(RNG.standard_normal(s), stop_gradient=False) for s in ((5, 3), (4, 3)))
    agree(S.mv(sparse, y[:, 0]), x @ y[:, 0])
    agree(S.addmm(start, sparse, y, 0.5, 2.0), 0.5 * start + 2.0 * (x @ y))
    same_gradients(S.addmm(start, sparse, y, 0.5, 2.0), 0.5 * start + 2.0 * (x @ y), [x, y, start], sparse={0})
    _, other = made(thinned(5, 3), kind)
    _, begin = made(thinned(4, 3), kind)
    wanted = 0.5 * begin.to_dense() + 2.0 * (x @ other.to_dense())
    agree(S.addmm(begin, sparse, other, 0.5, 2.0), wanted)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch", [(), (2,)])
def test_products_of_sparse_matrices(kind, batch):
    x, first = made(thinned(*batch, 4, 6), kind)
    y, second = made(thinned(*batch, 6, 5), kind)
    product = S.matmul(first, second)
    assert type(product) is type(first)
    agree(product, x @ y)
    same_gradients(product, x @ y, [x, y], sparse={0, 1})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch", [(), (2,)])
def test_products_at_a_few_places(kind, batch):
    x = paddle.to_tensor(RNG.standard_normal((*batch, 3, 4)), stop_gradient=False)
    y = paddle.to_tensor(RNG.standard_normal((*batch, 4, 5)), stop_gradient=False)
    mask, sparse = made(thinned(*batch, 3, 5), kind)
    wanted = (x @ y) * (mask.detach() != 0).astype("float64")
    agree(S.masked_matmul(x, y, sparse), wanted)
    same_gradients(S.masked_matmul(x, y, sparse), wanted, [x, y])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply"])
def test_gradients_of_sums_and_products(kind, name):
    """At positions of one, of both and of none, where the wheel's gradients are not all right."""
    x, first = made(thinned(3, 4), kind)
    y, second = made(thinned(3, 4), kind)
    same_gradients(getattr(S, name)(first, second), getattr(paddle, name)(x, y), [x, y], sparse={0, 1})
    agree(first + second, x + y)
    agree(first - second, x - y)
    agree(-(first * second) / 2.0, -(x * y) / 2.0)
    agree(2.0 * first, 2.0 * x)


def test_repeated_coordinates_add_up():
    """Wherever they go: into the dense form, into rows, products and sums."""
    at = [[0, 0, 1, 0], [2, 1, 0, 2]]
    x = S.sparse_coo_tensor(at, np.array([1.0, 2.0, 3.0, 4.0]), [2, 3])
    dense = paddle.to_tensor([[0.0, 2.0, 5.0], [3.0, 0.0, 0.0]], dtype="float64")
    agree(x, dense)
    agree(x.to_sparse_csr(), dense)
    agree(S.add(x, x), dense + dense)
    agree(S.multiply(x, x), dense * dense)
    agree(S.matmul(x, paddle.ones([3, 2], "float64")), dense.sum(-1, keepdim=True).expand([2, 2]))
    agree(S.sum(x, [0, 1]), dense.sum().reshape([1]))
    agree(S.sum(x, [0, 1], keepdim=True), dense.sum().reshape([1, 1]))


@pytest.mark.parametrize("axis", [0, 1, 2, [0, 1], [1, 2], [0, 2], None])
@pytest.mark.parametrize("kind", ["3", "2", "1", "csr"])
def test_sums_along_axes(kind, axis):
    x, sparse = made(thinned(2, 3, 4), kind, None if kind == "csr" else int(kind))
    wanted = x.sum(axis, keepdim=kind == "csr")
    found = S.sum(sparse, axis, None, kind == "csr")
    np.testing.assert_allclose(found.to_dense().numpy().ravel(), wanted.numpy().ravel(), rtol=1e-12)
    if axis is not None:
        assert list(found.shape) == list(wanted.shape)


def test_mixed_axes_are_moved_and_cut():
    x, sparse = made(thinned(3, 4, 2), "coo", 2)
    agree(S.transpose(sparse, [1, 0, 2]), x.transpose([1, 0, 2]))
    agree(S.slice(sparse, [0, 2], [1, 0], [3, 1]), x[1:3, :, 0:1])
    agree(S.reshape(sparse, [2, -1, 2]), x.reshape([2, 6, 2]))
    with pytest.raises(ValueError, match="mixes the 2 sparse axes with the dense ones"):
        S.transpose(sparse, [0, 2, 1])
    with pytest.raises(ValueError, match=r"with the dense axes \[2\] last"):
        S.reshape(sparse, [4, 6])


@pytest.mark.parametrize(
    "settings", [(1, 0, 1), (1, 1, 1), (2, [1, 0, 2], 1), (1, 2, 2), (2, "SAME", 1), (1, [0, 1] * 3, 1)]
)
def test_convolution_is_that_of_the_dense_tensor(settings):
    """Values and gradients, at every stride, padding and dilation."""
    x, sparse = made(
        np.repeat(thinned(2, 4, 5, 4, 1, share=0.2), 3, -1) * RNG.standard_normal((2, 4, 5, 4, 3)), "coo", 4
    )
    weight = paddle.to_tensor(RNG.standard_normal((2, 3, 2, 3, 2)), stop_gradient=False)
    stride, padding, dilation = settings
    turned = weight.transpose([4, 3, 0, 1, 2])
    wanted = paddle.nn.functional.conv3d(x, turned, None, stride, padding, dilation, 1, "NDHWC")
    found = F.conv3d(sparse, weight, None, stride, padding, dilation)
    agree(found, wanted)
    same_gradients(found, wanted, [x, weight], sparse={0})


@pytest.mark.parametrize("size", [3, 2])
@pytest.mark.parametrize("dilation", [1, 2])
def test_submanifold_convolution_keeps_the_positions(size, dilation):
    """Also their order, which is not sorted here; the values are those of a dense convolution there."""
    at = RNG.permutation(12)[:6]
    indices = paddle.to_tensor(np.stack([np.zeros(6, int), at // 4, at % 4]))
    x = S.sparse_coo_tensor(indices, RNG.standard_normal((6, 2)), [1, 3, 4, 2])
    weight = paddle.to_tensor(RNG.standard_normal((size, size, 2, 3)))
    found = F.subm_conv2d(x, weight, None, 1, 0, dilation)
    assert (found.indices() == indices).all()
    before = size // 2 * dilation
    pads = [before, (size - 1) * dilation - before] * 2
    dense = paddle.nn.functional.conv2d(
        x.to_dense(), weight.transpose([3, 2, 0, 1]), None, 1, pads, dilation, 1, "NHWC"
    )
    np.testing.assert_allclose(found.values().numpy(), dense.numpy()[0, at // 4, at % 4], rtol=1e-10)
    again = F.subm_conv2d_igemm(x, weight, None, 1, 0, dilation, key="a")
    np.testing.assert_array_equal(again.values().numpy(), found.values().numpy())


def test_a_network_of_layers_is_trained():
    """Convolutions, normalisation and pooling, then a dense layer: the loss falls, every parameter has a gradient."""
    paddle.seed(3)
    N = S.nn
    net = paddle.nn.Sequential(
        N.SubmConv3D(2, 4, 3, padding=1),
        N.BatchNorm(4),
        N.ReLU(),
        N.Conv3D(4, 4, 2, stride=2),
        N.MaxPool3D(2),
        N.LeakyReLU(),
    )
    x = made(thinned(2, 4, 4, 4, 1, share=0.5) * np.ones(2), "coo", 4)[1]
    x = S.cast(x, None, "float32").detach()
    optimizer = paddle.optimizer.Adam(0.05, parameters=net.parameters())
    losses = []
    for _ in range(12):
        loss = ((net(x).to_dense() - 1.0) ** 2).mean()
        loss.backward()
        assert all(p.grad is not None for p in net.parameters() if not p.stop_gradient)
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    assert losses[-1] < 0.5 * losses[0]


def test_normalisation_over_ranks_of_one():
    x = made(thinned(2, 3, 3, 1, share=0.6) * np.ones(3), "coo", 3)[1]
    x = S.cast(x, None, "float32")
    net = paddle.nn.Sequential(S.nn.BatchNorm(3, data_format="NHWC"), paddle.nn.BatchNorm2D(3))
    turned = S.nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert type(turned[0]) is S.nn.SyncBatchNorm
    assert type(turned[1]) is paddle.nn.SyncBatchNorm
    agree(turned[0](x), S.nn.BatchNorm(3, data_format="NHWC")(x).to_dense())


@pytest.mark.parametrize("masks", [(), ("padding",), ("padding", "attention")])
def test_attention_sees_what_the_mask_has(masks):
    batch, heads, length = 2, 2, 4
    q, k, v = (paddle.to_tensor(RNG.standard_normal((batch, heads, length, 3)), stop_gradient=False) for _ in range(3))
    seen = (RNG.random((batch * heads, length, length)) < 0.6) | np.eye(length, dtype=bool)
    padding = np.ones((batch, length)) if "padding" in masks else None
    attention = np.tril(np.ones((length, length))) if "attention" in masks else None
    kept = seen.reshape(batch, heads, length, length).copy()
    if attention is not None:
        kept &= attention != 0
    made_masks = [None if m is None else paddle.to_tensor(m) for m in (padding, attention)]
    found = F.attention(q, k, v, paddle.to_tensor(seen.astype("float64")).to_sparse_csr(), *made_masks)
    scores = q @ k.transpose([0, 1, 3, 2]) / np.sqrt(3.0)
    scores = paddle.where(paddle.to_tensor(kept), scores, paddle.full_like(scores, -np.inf))
    wanted = paddle.nn.functional.softmax(scores, -1) @ v
    agree(found, wanted)
    same_gradients(found, wanted, [q, k, v])


def test_a_padded_key_is_hidden():
    q = paddle.ones([1, 1, 2, 2])
    v = paddle.to_tensor([[[[1.0, 2.0], [5.0, 6.0]]]])
    full = paddle.ones([1, 2, 2]).to_sparse_csr()
    found = F.attention(q, q, v, full, paddle.to_tensor([[1.0, 0.0]]))
    assert found.numpy().ravel().tolist() == [1.0, 2.0, 1.0, 2.0]


@pytest.mark.parametrize("center", [True, False])
def test_principal_components(center):
    """A matrix of rank 3 (4 with its mean) comes back from as many components."""
    paddle.seed(1)
    x = thinned(12, 3) @ thinned(3, 8)
    u, s, v = S.pca_lowrank(paddle.to_tensor(x).to_sparse_csr(), 4, center)
    wanted = x - x.mean(0) if center else x
    np.testing.assert_allclose((u.numpy() * s.numpy()) @ v.numpy().T, wanted, atol=1e-10)


def test_captured_functions_of_sparse_tensors():
    """Made of inputs, multiplied and differentiated in one program, which gives the eager numbers."""
    at = paddle.to_tensor([[0, 1, 1], [1, 0, 2]])

    def step(values, y):
        x = S.sparse_coo_tensor(at, values, [2, 3], stop_gradient=False)
        product = S.matmul(S.tanh(x), y) + S.transpose(x, [1, 0]).to_dense().sum()
        return paddle.grad((product**2).sum(), [values])[0]

    values = paddle.to_tensor([0.5, -1.0, 2.0], stop_gradient=False)
    y = paddle.to_tensor(RNG.standard_normal((3, 2)).astype("float32"))
    captured = paddle.jit.to_static(step, full_graph=True)
    for _ in range(2):
        np.testing.assert_allclose(captured(values, y).numpy(), step(values, y).numpy(), rtol=1e-6)


def test_the_graph_of_a_sparse_tensor():
    x = S.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2], stop_gradient=False)
    S.square(x).backward()
    assert isinstance(x.grad, S.SparseCooTensor)
    assert x.grad.values().tolist() == [4.0, 6.0]
    x.clear_gradient(False)
    assert x.grad is None
    S.square(x).backward(S.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 10.0], [2, 2]))
    assert x.grad.to_dense().tolist() == [[0.0, 4.0], [60.0, 0.0]]
    y = x.detach()
    assert y.stop_gradient
    y.stop_gradient = False
    assert not y.values().stop_gradient
    assert y.cpu() is y
    assert paddle.ones([2, 2]).is_same_shape(y)
    assert not paddle.ones([2, 3]).is_same_shape(y)


def test_empty_tensors():
    zero = paddle.zeros([2, 3])
    for x in (zero.to_sparse_coo(2), zero.to_sparse_csr()):
        assert x.nnz() == 0
        agree(S.add(S.sin(x), x), zero)
        agree(S.matmul(x, paddle.ones([3, 4])), paddle.zeros([2, 4]))
        agree(F.softmax(x), zero)
        agree(S.transpose(x, [1, 0]), zero.T)
    empty = S.sparse_coo_tensor(paddle.zeros([4, 0], "int64"), paddle.zeros([0, 2]), [1, 3, 3, 3, 2])
    assert F.conv3d(empty, paddle.ones([2, 2, 2, 2, 5])).to_dense().shape == [1, 2, 2, 2, 5]


COO = S.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 2])
CSR = COO.to_sparse_csr()
GRID = S.sparse_coo_tensor([[0], [1], [1]], [[1.0, 2.0]], [1, 3, 3, 2])


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (TypeError, "sin.*'x' must be a sparse tensor, got a dense Tensor", lambda: S.sin(paddle.ones([2]))),
        (TypeError, "add.*both be COO or both be CSR", lambda: S.add(COO, CSR)),
        (TypeError, "add.*'y' must be a sparse tensor, got 2", lambda: S.add(COO, 2)),
        (TypeError, "coalesce.*must be a SparseCooTensor", lambda: S.coalesce(CSR)),
        (TypeError, "matmul.*a sparse y must be one", lambda: S.matmul(COO, CSR)),
        (ValueError, "matmul.*should fit", lambda: S.matmul(COO, paddle.ones([3, 2]))),
        (ValueError, "mv.*dense vector", lambda: S.mv(COO, paddle.ones([3]))),
        (ValueError, "addmm.*'input' must be a Tensor", lambda: S.addmm(COO, COO, paddle.ones([2, 2]))),
        (
            ValueError,
            "masked_matmul.*should fit",
            lambda: S.masked_matmul(paddle.ones([2, 3]), paddle.ones([2, 2]), COO),
        ),
        (TypeError, "masked_matmul.*dense", lambda: S.masked_matmul(COO, paddle.ones([2, 2]), COO)),
        (TypeError, "mask_as.*'x' must be a dense", lambda: S.mask_as(COO, COO)),
        (ValueError, "softmax.*-1 for a CSR", lambda: F.softmax(CSR, 0)),
        (ValueError, "softmax.*from -2 to 1", lambda: F.softmax(COO, 2)),
        (ValueError, "transpose.*perm should", lambda: S.transpose(COO, [0, 2])),
        (ValueError, "2 or 3 sparse axes", lambda: GRID.to_sparse_csr()),
        (ValueError, "2 or 3 axes", lambda: paddle.ones([2]).to_sparse_csr()),
        (ValueError, "sparse_dim should be from 1 to 1", lambda: paddle.ones([2]).to_sparse_coo(2)),
        (ValueError, "none below 0", lambda: S.sparse_coo_tensor([[0, -1]], [1.0, 2.0])),
        (ValueError, r"cols should lie in \[0, 3\)", lambda: S.sparse_csr_tensor([0, 1], [9], [1.0], [1, 3])),
        (ValueError, "crows should rise", lambda: S.sparse_csr_tensor([0, 2, 1], [0], [1.0], [2, 3])),
        (
            TypeError,
            "'x' must be a SparseCooTensor, got Tensor",
            lambda: F.conv2d(paddle.ones([1, 3, 3, 2]), paddle.ones([1, 1, 2, 1])),
        ),
        (ValueError, "'weight' must be", lambda: F.conv2d(GRID, paddle.ones([2, 2, 3, 1]))),
        (ValueError, "does not fit", lambda: F.conv2d(GRID, paddle.ones([4, 4, 2, 1]))),
        (NotImplementedError, "groups 2", lambda: F.conv2d(GRID, paddle.ones([2, 2, 2, 1]), groups=2)),
        (NotImplementedError, "'reflect'", lambda: S.nn.Conv2D(2, 2, 2, padding_mode="reflect")),
        (ValueError, "'NHWC'", lambda: S.nn.SubmConv2D(2, 2, 2, data_format="NCHW")),
        (ValueError, "weight_attr is False", lambda: S.nn.Conv2D(2, 2, 2, weight_attr=False)),
        (NotImplementedError, "return_mask", lambda: S.nn.MaxPool3D(2, return_mask=True)),
        (NotImplementedError, "ceil_mode", lambda: F.max_pool3d(GRID, 2, ceil_mode=True)),
        (TypeError, "must be a SparseCooTensor with dense channels", lambda: S.nn.BatchNorm(2)(COO)),
        (ValueError, "sparse_mask", lambda: F.attention(*[paddle.ones([1, 1, 3, 2])] * 3, CSR)),
        (ValueError, "q should be from 0 to 2", lambda: S.pca_lowrank(COO, 3)),
    ],
)
def test_wrong_input_is_refused_by_name(error, text, call):
    with pytest.raises(error, match=text):
        call()
