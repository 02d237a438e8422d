"""Files of uncompressed sound: WAV of 16 bits a sample, through the standard library."""

from __future__ import annotations

import io
import wave
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

import argosy.runtime  # noqa: F401  (operators come with the first tensor)
from argosy.argument_checks import validate_call
from argosy.framework.serialization import replace_file
from argosy_tensorcore.tensor import Tensor

__all__ = ["AudioInfo", "get_current_backend", "info", "list_available_backends", "load", "save", "set_backend"]

_NAME = "wave_backend"
_FULL = 2**15
_AT_ONCE = 2**20


class AudioInfo(NamedTuple):
    """What a file says of itself."""

    sample_rate: int
    num_samples: int
    num_channels: int
    bits_per_sample: int
    encoding: str


def list_available_backends() -> list[str]:
    """The one that there is."""
    return [_NAME]


def get_current_backend() -> str:
    """The one that there is."""
    return _NAME


def set_backend(backend_name: str) -> None:
    """Raises ``NotImplementedError`` for another one than there is."""
    if backend_name != _NAME:
        raise NotImplementedError(f"set_backend(): argument 'backend_name' should be {_NAME!r}, got {backend_name!r}")


def _open_wave(name: str, filepath: Any) -> Any:
    """Raises ``NotImplementedError`` for what is no WAV file of 16 bits."""
    source = filepath if hasattr(filepath, "read") else str(filepath)
    try:
        file = wave.open(source)
    except (wave.Error, EOFError, RuntimeError) as error:
        raise NotImplementedError(f"{name}(): {filepath!s:.80} should be a WAV file of 16 bits: {error}") from None
    return file


@validate_call
def info(filepath: str | BinaryIO) -> AudioInfo:
    """Samples a second, samples, channels and bits of a WAV file."""
    with _open_wave("info", filepath) as file:
        bits = file.getsampwidth() * 8
        return AudioInfo(file.getframerate(), file.getnframes(), file.getnchannels(), bits, "PCM_S")


@validate_call
def load(
    filepath: str | Path | BinaryIO,
    frame_offset: int = 0,
    num_frames: int = -1,
    normalize: bool = True,
    channels_first: bool = True,
) -> tuple[Tensor, int]:
    """The samples [channels, samples] (or [samples, channels]) as float32, and how many there are a second.

    ``num_frames`` of them from ``frame_offset`` on, or all; in [-1, 1), or as they are unless ``normalize``.
    """
    with _open_wave("load", filepath) as file:
        if file.getsampwidth() != 2:
            raise NotImplementedError(f"load(): samples of 16 bits are read, the file has {file.getsampwidth() * 8}")
        if not 0 <= frame_offset <= file.getnframes():
            raise ValueError(f"load(): argument 'frame_offset' should be 0 to {file.getnframes()}, got {frame_offset}")
        if num_frames < -1:
            raise ValueError(f"load(): argument 'num_frames' should be -1 (all) or more, got {num_frames}")
        file.setpos(frame_offset)
        content = _frames(file, file.getnframes() if num_frames == -1 else num_frames)
        rate, channels = file.getframerate(), file.getnchannels()
    samples: np.ndarray = np.frombuffer(content, "<i2").astype(np.float32).reshape(-1, channels)
    samples = samples / np.float32(_FULL) if normalize else samples
    return Tensor(samples.T.copy() if channels_first else samples), rate


def _frames(file: wave.Wave_read, count: int) -> bytes:
    """The bytes of ``count`` whole frames, or of those that there are: headers of streams claim any number."""
    parts = []
    while count > 0 and (part := file.readframes(min(count, _AT_ONCE))):
        parts.append(part)
        count -= _AT_ONCE
    content = b"".join(parts)
    return content[: len(content) - len(content) % (2 * file.getnchannels())]


@validate_call
def save(
    filepath: str | Path,
    src: Tensor,
    sample_rate: int,
    channels_first: bool = True,
    encoding: str | None = None,
    bits_per_sample: int | None = 16,
) -> None:
    """Write samples [channels, samples] (or [samples, channels]): floats in [-1, 1), which are cut off there, or
    integers of 16 bits; atomically: on any error what was there stays."""
    if src.ndim != 2:
        raise ValueError(f"save(): argument 'src' should have 2 axes, got {list(src.shape)}")
    if bits_per_sample not in (None, 16):
        raise ValueError(f"save(): argument 'bits_per_sample' should be 16, got {bits_per_sample}")
    if encoding not in (None, "PCM_S", "PCM16"):
        raise NotImplementedError(f"save(): argument 'encoding' should be 'PCM_S', got {encoding!r}")
    samples: np.ndarray = src.numpy().T if channels_first else src.numpy()
    if samples.dtype.kind == "f":
        samples = np.clip(samples * _FULL, -_FULL, _FULL - 1)
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes(samples.astype("<i2").tobytes())
    replace_file(filepath, content.getvalue())
