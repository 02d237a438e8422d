"""``paddle.fft`` against numpy's: every function, norm, size and axis; gradients to second order; captured."""

import numpy as np
import pytest

import argosy as paddle
from argosy_autograd import check_grads

RNG = np.random.default_rng(0)
NORMS = ("backward", "forward", "ortho")
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn")
REAL = ("rfft", "ihfft", "rfftn", "rfft2", "ihfft2", "ihfftn")


def signal(name, shape):
    x = RNG.standard_normal(shape)
    return x if name in REAL else x + 1j * RNG.standard_normal(shape)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ONE)
def test_one_axis(name, norm):
    """Even, odd, cut and padded lengths, along either axis."""
    for shape, n, axis in [((8,), None, -1), ((3, 7), None, 0), ((3, 7), 5, 1), ((4, 5), 9, -1), ((5, 4), 6, 0)]:
        x = signal(name, shape)
        got = getattr(paddle.fft, name)(paddle.to_tensor(x), n, axis, norm).numpy()
        expected = getattr(np.fft, name)(x, n, axis, norm)
        np.testing.assert_allclose(got, expected, atol=1e-12)
        assert got.dtype == expected.dtype


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", SEVERAL)
def test_several_axes(name, norm):
    """Of one to three axes, in any order, with sizes or without."""
    for shape, s, axes in [
        ((4, 5), None, None),
        ((4, 6, 5), (3, 8), (0, 2)),
        ((4, 6, 5), None, (2, 0)),
        ((3, 4, 6), (4, 7), (1, 2)),
    ]:
        x = signal(name, shape)
        got = getattr(paddle.fft, name)(paddle.to_tensor(x), s, axes, norm).numpy()
        np.testing.assert_allclose(got, getattr(np.fft, name)(x, s, axes, norm), atol=1e-12)
        if axes is None:
            two = getattr(paddle.fft, name[:-1] + "2")(paddle.to_tensor(x), norm=norm).numpy()
            np.testing.assert_allclose(two, got, atol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
def test_hermitian_of_several_axes(norm):
    """numpy has none: hfftn is fftn along all axes but the last and hfft there; ihfftn takes it back."""
    x = signal("", (3, 4, 5))
    got = paddle.fft.hfftn(paddle.to_tensor(x), (3, 4, 9), norm=norm).numpy()
    expected = np.fft.hfft(np.fft.fftn(x, axes=(0, 1), norm=norm), 9, -1, norm)
    np.testing.assert_allclose(got, expected, atol=1e-12)
    y = RNG.standard_normal((3, 4, 6))
    spectrum = paddle.fft.ihfftn(paddle.to_tensor(y), norm=norm)
    np.testing.assert_allclose(paddle.fft.hfftn(spectrum, (3, 4, 6), norm=norm).numpy(), y, atol=1e-12)
    plane = paddle.fft.ihfft2(paddle.to_tensor(y), norm=norm)
    np.testing.assert_allclose(paddle.fft.hfft2(plane, (4, 6), norm=norm).numpy(), y, atol=1e-12)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", [227, 1009])
def test_lines_of_large_primes_and_their_gradients_when_captured(n, dtype):
    """Both directions along either axis. With L = sum w |F x|^2 the gradient g is 2 F' w F x, F' the adjoint, n
    times the inverse; that of sum |g|^2 is 8 n F' w^2 F x."""
    x, weight = signal("fft", (3, n)).astype(dtype), RNG.uniform(0.5, 1.5, (3, n))
    w = paddle.to_tensor(weight.astype("float32" if dtype == "complex64" else "float64"))

    def gradients(x):
        y = paddle.fft.fft(x)
        (g,) = paddle.grad((w * (y.real() ** 2 + y.imag() ** 2)).sum(), x, create_graph=True)
        return g, paddle.grad((g.real() ** 2 + g.imag() ** 2).sum(), x)[0]

    def program(x):
        columns = paddle.fft.fft(paddle.transpose(x, [1, 0]), axis=0)
        return paddle.fft.fft(x), paddle.fft.ifft(x, norm="ortho"), columns, *gradients(x)

    run = paddle.jit.to_static(program, full_graph=True)
    got = run(paddle.to_tensor(x, stop_gradient=False))
    y = np.fft.fft(x.astype("complex128"))
    want = [y, np.fft.ifft(x, norm="ortho"), y.T]
    want += [2 * n * np.fft.ifft(weight * y), 8 * n**2 * np.fft.ifft(weight**2 * y)]
    for a, b in zip(got, want, strict=True):
        assert a.numpy().dtype == dtype
        assert np.linalg.norm(a.numpy() - b) < 50 * np.finfo(dtype).eps * np.linalg.norm(b)


@pytest.mark.parametrize("name", [*ONE, *SEVERAL, "hfft2", "ihfft2"])
def test_gradients_to_second_order(name):
    """Of sum |f(x)|^3, against finite differences: real and complex inputs, odd lengths, cut and padded."""
    shape = (3, 5) if name[-1] in "n2" else (5,)
    for sizes in (None, 4, 7):
        given = None if sizes is None else (3, sizes) if len(shape) == 2 else sizes

        def cubed(re, im, given=given):
            z = re if name in REAL else paddle.complex(re, im)
            return (getattr(paddle.fft, name)(z, given).abs() ** 3).sum() + (im**3).sum()

        check_grads(cubed, list(RNG.standard_normal((2, *shape))), order=2)


def test_a_spectral_derivative_in_a_compiled_step():
    """d/dx of sin on a circle by its spectrum, and the gradient of its energy by the values: 2 k^2 u."""

    def slope(u):
        k = paddle.fft.rfftfreq(16, 1 / 16, dtype="float64")
        return paddle.fft.irfft(paddle.complex(paddle.zeros_like(k), k) * paddle.fft.rfft(u))

    def energy(u):
        return paddle.grad((slope(u) ** 2).sum(), u)[0]

    x = np.arange(16) * 2 * np.pi / 16
    u = paddle.to_tensor(np.sin(3 * x), stop_gradient=False)
    np.testing.assert_allclose(slope(u).numpy(), 3 * np.cos(3 * x), atol=1e-12)
    np.testing.assert_allclose(energy(u).numpy(), 18 * np.sin(3 * x), atol=1e-11)
    compiled = paddle.jit.to_static(energy, full_graph=True)
    np.testing.assert_allclose(compiled(u).numpy(), 18 * np.sin(3 * x), atol=1e-11)


def test_frequencies_and_shifts():
    """fftfreq, rfftfreq, fftshift, ifftshift of even and odd lengths."""
    for n in (6, 7):
        np.testing.assert_allclose(paddle.fft.fftfreq(n, 0.5).numpy(), np.fft.fftfreq(n, 0.5), rtol=1e-6)
        np.testing.assert_allclose(paddle.fft.rfftfreq(n, 0.5).numpy(), np.fft.rfftfreq(n, 0.5), rtol=1e-6)
        x = RNG.standard_normal((n, 3))
        np.testing.assert_array_equal(paddle.fft.fftshift(paddle.to_tensor(x)).numpy(), np.fft.fftshift(x))
        np.testing.assert_array_equal(paddle.fft.ifftshift(paddle.to_tensor(x), 0).numpy(), np.fft.ifftshift(x, 0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: paddle.fft.fftn(x, axes=(0, 2)), r"axes \[0, 2\] do not name"),
        (lambda x: paddle.fft.fftn(x, s=(4, 0)), r"fftn: s \[4, 0\]"),
        (lambda x: paddle.fft.fftn(x, s=(4,), axes=(0, 1)), "a positive length for each"),
        (lambda x: paddle.fft.irfft(x[:, :1]), "give no element"),
        (lambda x: paddle.fft.fft(x, norm="unit"), "unit"),
    ],
)
def test_errors_say_what_is_wrong(call, message):
    """Axes, sizes, norms."""
    with pytest.raises(ValueError, match=message):
        call(paddle.to_tensor(signal("", (4, 3))))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_real_spectra_have_no_imaginary_parts(dtype):
    """irfft and hfft of real numbers, as Paddle takes them; gradients are real."""
    x = np.arange(12).reshape(3, 4).astype(dtype)
    wide = "float64" if dtype == "float64" else "float32"
    for name in ("irfft", "hfft"):
        got = getattr(paddle.fft, name)(paddle.to_tensor(x))
        assert got.dtype == getattr(paddle, wide)
        np.testing.assert_allclose(got.numpy(), getattr(np.fft, name)(x), rtol=1e-5, atol=1e-5)
    if dtype != "int64":
        leaf = paddle.to_tensor(x, stop_gradient=False)
        (g,) = paddle.grad((paddle.fft.irfft(leaf) ** 2).sum(), leaf)
        assert g.dtype == leaf.dtype
        step = np.zeros_like(x)
        step[1, 2] = 1e-2
        energy = [(np.fft.irfft(x + s * step) ** 2).sum() for s in (1, -1)]
        np.testing.assert_allclose(g.numpy()[1, 2], (energy[0] - energy[1]) / 2e-2, rtol=1e-3)


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2"])
def test_transforms_of_planes_take_two_axes(name):
    """As in Paddle; one axis, or three, were transformed without a word."""
    x = paddle.ones([3, 4, 5])
    for keywords in ({"axes": (0,)}, {"axes": (0, 1, 2)}, {"axes": 1}, {"s": (3,), "axes": (0, 1)}, {"s": 3}):
        with pytest.raises(ValueError, match=f"{name}: (s|axes) should be two integers, got"):
            getattr(paddle.fft, name)(x, **keywords)


@pytest.mark.parametrize("captured", [False, True])
def test_sums_over_nothing_are_zero(captured):
    """As in Paddle: a transform along an axis without elements keeps its shape; a real one has one frequency."""

    def transforms(x, spectrum):
        fft = paddle.fft
        return fft.fft(x), fft.ifft(x), fft.rfft(x), fft.fftn(x), fft.irfft(spectrum, axis=1)

    x, spectrum = paddle.zeros([2, 0]), paddle.zeros([0, 3], "complex64")
    found = (paddle.jit.to_static(transforms, full_graph=True) if captured else transforms)(x, spectrum)
    assert [y.shape for y in found] == [[2, 0], [2, 0], [2, 1], [2, 0], [0, 4]]
    np.testing.assert_array_equal(found[2].numpy(), np.zeros((2, 1)))


def test_shifts_take_other_names():
    x = paddle.arange(6).reshape([2, 3])
    np.testing.assert_array_equal(paddle.fft.fftshift(input=x, dim=1).numpy(), np.fft.fftshift(x.numpy(), 1))
    np.testing.assert_array_equal(paddle.fft.ifftshift(input=x, dim=0).numpy(), np.fft.ifftshift(x.numpy(), 0))
