"""Audio: files of sound, windows against their formulas, features captured as eager (values are held against Paddle's
in the parity suite)."""

from __future__ import annotations

import io

import numpy as np
import pytest

import argosy as paddle
from argosy.signal.windows import _WINDOWS


def test_sound_goes_through_a_file(tmp_path):
    """16 bits a sample, two channels; a part of it; as it is in the file."""
    path, rng = tmp_path / "x.wav", np.random.default_rng(0)
    sound = paddle.to_tensor(rng.uniform(-1, 1, (2, 500)).astype("float32"))
    paddle.audio.save(path, sound, 8000)
    found, rate = paddle.audio.load(path)
    assert rate == 8000
    np.testing.assert_allclose(found.numpy(), sound.numpy(), atol=2**-15)
    assert paddle.audio.info(str(path)) == (8000, 500, 2, 16, "PCM_S")
    part, _ = paddle.audio.load(io.BytesIO(path.read_bytes()), 100, 50, normalize=False, channels_first=False)
    assert part.shape == [50, 2]
    np.testing.assert_allclose(part.numpy() / 2**15, found.numpy()[:, 100:150].T)
    paddle.audio.save(path, paddle.to_tensor([[2.0, -2.0]]), 8000)
    assert paddle.audio.load(path, normalize=False)[0].tolist() == [[32767.0, -32768.0]]


def test_files_that_are_no_sound_are_refused(tmp_path):
    """An error names what is wrong; nothing else is read."""
    path = tmp_path / "x.wav"
    for content in (b"", b"RIFF", b"RIFF\xff\xff\xff\xffWAVEfmt ", bytes(100)):
        path.write_bytes(content)
        with pytest.raises(NotImplementedError, match="should be a WAV file of 16 bits"):
            paddle.audio.load(path)
    with pytest.raises(ValueError, match="'src' should have 2 axes"):
        paddle.audio.save(path, paddle.ones([3]), 8000)
    with pytest.raises(ValueError, match="'bits_per_sample' should be 16, got 24"):
        paddle.audio.save(path, paddle.ones([1, 3]), 8000, bits_per_sample=24)
    assert paddle.audio.backends.list_available_backends() == [paddle.audio.backends.get_current_backend()]
    with pytest.raises(NotImplementedError, match="soundfile"):
        paddle.audio.backends.set_backend("soundfile")


PARAMETERS = {
    "exponential": (None, 2.0), "gaussian": (3.0,), "general_cosine": ([0.5, 0.5],), "general_gaussian": (1.5, 2.0),
    "general_hamming": (0.6,), "kaiser": (5.0,),
}  # fmt: skip


@pytest.mark.parametrize("name", _WINDOWS)
@pytest.mark.parametrize("length", [5, 8])
def test_windows_are_symmetric_and_periodic_ones_continue(name, length):
    """A symmetric window reads the same backwards; a periodic one is a longer symmetric one without its end."""
    window = (name, *PARAMETERS.get(name, ()))
    symmetric = paddle.audio.functional.get_window(window, length, fftbins=False).numpy()
    np.testing.assert_allclose(symmetric, symmetric[::-1], atol=1e-12)
    longer = paddle.audio.functional.get_window(window, length + 1, fftbins=False).numpy()
    np.testing.assert_array_equal(paddle.audio.functional.get_window(window, length).numpy(), longer[:-1])


def test_scales_go_there_and_back():
    """Mels of numbers and of tensors, on both scales."""
    frequencies = np.array([0.0, 300.0, 999.0, 1000.0, 7000.0])
    for htk in (False, True):
        mels = paddle.audio.functional.hz_to_mel(paddle.to_tensor(frequencies), htk)
        back = paddle.audio.functional.mel_to_hz(mels, htk)
        np.testing.assert_allclose(back.numpy(), frequencies, rtol=1e-6, atol=1e-6)
        singly = [paddle.audio.functional.hz_to_mel(float(f), htk) for f in frequencies]
        np.testing.assert_allclose(mels.numpy(), singly, rtol=1e-6, atol=1e-6)


def test_features_are_captured():
    """Coefficients of a batch of signals, with gradients, as one program."""
    layer = paddle.audio.features.MFCC(8000, 7, 64, n_mels=10)
    x = paddle.to_tensor(np.random.default_rng(1).standard_normal((2, 300)).astype("float32"))
    wanted = layer(x)
    found = paddle.jit.to_static(layer.forward, full_graph=True)(x)
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-3)
    assert sorted(layer.state_dict()) == [
        "_log_melspectrogram._melspectrogram._spectrogram.fft_window",
        "_log_melspectrogram._melspectrogram.fbank_matrix",
        "dct_matrix",
    ]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: paddle.audio.features.Spectrogram(power=0.0), "'power' should be positive"),
        (lambda: paddle.audio.features.MFCC(n_mfcc=80), "'n_mfcc' should be at most n_mels, got 80 and 64"),
        (lambda: paddle.audio.functional.create_dct(3, 4, "no"), "'norm' should be 'ortho' or None, got 'no'"),
        (lambda: paddle.audio.functional.compute_fbank_matrix(8000, 64, norm="no"), "'norm' should be 'slaney'"),
        (lambda: paddle.audio.functional.power_to_db(paddle.ones([2]), amin=0.0), "'amin' should be positive"),
        (lambda: paddle.audio.functional.get_window("gaussian", 4), "needs 1 parameters in a tuple"),
        (lambda: paddle.audio.functional.get_window("no", 4), "'window' should be one of bartlett, "),
    ],
)
def test_wrong_settings_are_refused_by_name(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_windows_are_functions_of_their_own():
    """The wheel's values."""
    for name in ("bartlett", "blackman", "hann"):
        made = getattr(paddle, f"{name}_window")(6, periodic=False)
        expected = paddle.audio.functional.get_window(name, 6, fftbins=False, dtype="float32")
        np.testing.assert_allclose(made.numpy(), expected.numpy(), atol=1e-7)
        assert made.dtype is paddle.float32
    hamming = [0.08, 0.39785218, 0.9121478, 0.9121478, 0.39785218]
    np.testing.assert_allclose(paddle.hamming_window(5).numpy(), hamming, rtol=1e-6)
    weighed = [0.2, 0.4763932, 0.92360675, 0.92360675, 0.4763932]
    np.testing.assert_allclose(paddle.hamming_window(5, alpha=0.6, beta=0.4).numpy(), weighed, rtol=1e-6)
    kaiser = [5.27734373e-05, 0.101719715, 0.792939425, 0.792939425, 0.101719715]
    np.testing.assert_allclose(paddle.kaiser_window(5).numpy(), kaiser, rtol=1e-5)
    assert paddle.hann_window(1).tolist() == paddle.hamming_window(1).tolist() == [1.0]
    assert paddle.hann_window(0).shape == [0]
    assert not paddle.hann_window(3, requires_grad=True).stop_gradient
    with pytest.raises(ValueError, match="should not be negative, got -1"):
        paddle.hann_window(-1)
    with pytest.raises(TypeError, match="'window_length' must be an integer"):
        paddle.hann_window("3")
