"""Short-time spectra: there and back, against scipy's definition written out, captured, in batches, wrong input."""

import numpy as np
import pytest

import argosy as paddle


@pytest.mark.parametrize("settings", [{}, {"normalized": True}, {"onesided": False}, {"win_length": 12}])
def test_a_signal_comes_back(settings):
    """istft undoes stft wherever windows overlap, and gradients go through both."""
    x = paddle.to_tensor(np.random.default_rng(0).standard_normal((2, 64)), stop_gradient=False)
    window = paddle.to_tensor(np.hanning(settings.get("win_length", 16) + 2)[1:-1])
    settings = {"n_fft": 16, "hop_length": 4, "window": window, **settings}
    back = paddle.signal.istft(paddle.signal.stft(x, **settings), **settings)
    np.testing.assert_allclose(back.numpy(), x.numpy(), atol=1e-12)
    back.square().sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.numpy(), atol=1e-10)


def test_each_column_is_the_transform_of_a_window():
    signal, window = np.random.default_rng(1).standard_normal(20), np.arange(1.0, 7)
    found = paddle.signal.stft(paddle.to_tensor(signal), 6, 3, window=paddle.to_tensor(window), center=False).numpy()
    expected = np.stack([np.fft.rfft(signal[i : i + 6] * window) for i in range(0, 15, 3)], -1)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_spectrogram_is_captured():
    x = paddle.to_tensor(np.random.default_rng(2).standard_normal((2, 32)).astype("float32"))

    def power(signal):
        return paddle.signal.stft(signal, 8).abs().square().mean(-1)

    np.testing.assert_allclose(paddle.jit.to_static(power, full_graph=True)(x).numpy(), power(x).numpy(), rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: paddle.signal.frame(x, 3, 1, axis=1), "axis is 0 or -1"),
        (lambda x: paddle.signal.frame(x, 10, 1), "frame_length should be from 1 to 9"),
        (lambda x: paddle.signal.overlap_add(x, 2), "two axes or more"),
        (lambda x: paddle.signal.stft(x, 8, pad_mode="wrap"), "pad_mode"),
        (lambda x: paddle.signal.stft(x, 8, win_length=9), "win_length should be from 1 to n_fft"),
        (lambda x: paddle.signal.stft(x, 8, window=paddle.ones([3])), "window should have the shape"),
        (lambda x: paddle.signal.istft(paddle.ones([4, 2], "complex64"), 8), "5 frequencies are expected"),
        (lambda x: paddle.signal.istft(paddle.ones([5, 3], "complex64"), 8, 8, 4), "should reach every element"),
    ],
)
def test_wrong_input_is_named(call, said):
    with pytest.raises(ValueError, match=said):
        call(paddle.ones([9]))
