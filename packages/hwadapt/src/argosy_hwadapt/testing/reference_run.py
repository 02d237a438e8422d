"""The reference run of the counting rule: a two-layer perceptron trained with SGD, all arithmetic on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from argosy_hwadapt.contract import DeviceRuntime
from argosy_hwadapt.device import Device
from argosy_hwadapt.kernel import Scalar
from argosy_hwadapt.memory import Buffer
from argosy_hwadapt.testing.kernels import KitKernel, usable_form
from argosy_hwadapt.testing.suite import require

_B, _I, _H, _O = 8, 5, 16, 3  # batch, inputs, hidden units, outputs
_STEPS, _RATE = 3, 0.05

Array = NDArray[np.float32]


def check_reference_run(name: str, runtime: DeviceRuntime) -> None:
    """Train on a device of this runtime; fail unless the losses equal numpy's within 1e-4."""
    device = Device(name, 0, runtime.devices()[0], runtime)
    found, expected = train_on_device(device), train_on_host()
    require(np.allclose(found, expected, rtol=1e-4), f"losses are {found}, expected {expected}")


def train_on_device(device: Device) -> list[float]:
    """Return the loss before each step, computed by the kit's kernels."""
    return _Trainer(device).losses()


def train_on_host() -> list[float]:
    """Return the same losses by numpy."""
    x_BI, t_BO, w_IH, w_HO = _data()
    losses = []
    for _ in range(_STEPS):
        h_BH = np.maximum(x_BI @ w_IH, 0)
        d_BO = h_BH @ w_HO - t_BO
        losses.append(float(np.square(d_BO).sum()))
        g_HO, g_BH = h_BH.T @ d_BO, (d_BO @ w_HO.T) * (h_BH > 0)
        w_HO, w_IH = w_HO - _RATE * g_HO, w_IH - _RATE * (x_BI.T @ g_BH)
    return losses


class _Trainer:
    """Holds the kernels and buffers of the perceptron on one device."""

    def __init__(self, device: Device) -> None:
        self._device, self._kernels = device, {}
        form = usable_form(device)
        for entry in ("matmul", "relu", "relu_backward", "axpby", "sum_squares"):
            self._kernels[entry] = KitKernel(device, form, entry)
        self._x, self._t, self._w1, self._w2 = (self._upload(array) for array in _data())

    def losses(self) -> list[float]:
        return [self._step() for _ in range(_STEPS)]

    def _step(self) -> float:
        h = self._relu(self._matmul(self._x, self._w1, _B, _H, _I), _B * _H)
        y = self._matmul(h, self._w2, _B, _O, _H)
        d = self._axpby(y, self._t, 1.0, -1.0, _B * _O)
        loss = self._device.allocate(4)
        self._launch("sum_squares", [d, loss], n=_B * _O)
        g_w2 = self._matmul(h, d, _H, _O, _B, transpose_a=1)
        g_h, g_pre = self._matmul(d, self._w2, _B, _H, _O, transpose_b=1), self._device.allocate(4 * _B * _H)
        self._launch("relu_backward", [h, g_h, g_pre], n=_B * _H)
        g_w1 = self._matmul(self._x, g_pre, _I, _H, _B, transpose_a=1)
        self._w1 = self._axpby(self._w1, g_w1, 1.0, -_RATE, _I * _H)
        self._w2 = self._axpby(self._w2, g_w2, 1.0, -_RATE, _H * _O)
        return float(self._download(loss)[0])

    def _matmul(
        self, a: Buffer, b: Buffer, m: int, n: int, k: int, transpose_a: int = 0, transpose_b: int = 0
    ) -> Buffer:
        c = self._device.allocate(4 * m * n)
        sizes = [Scalar("i", value) for value in (m, n, k, transpose_a, transpose_b)]
        self._kernels["matmul"].launch((m, n), [a, b, c, *sizes])
        return c

    def _relu(self, x: Buffer, n: int) -> Buffer:
        y = self._device.allocate(4 * n)
        self._launch("relu", [x, y], n=n)
        return y

    def _axpby(self, x: Buffer, y: Buffer, a: float, b: float, n: int) -> Buffer:
        out = self._device.allocate(4 * n)
        self._launch("axpby", [x, y, out, Scalar("f", a), Scalar("f", b)], n=n)
        return out

    def _launch(self, entry: str, args: list[Any], n: int) -> None:
        self._kernels[entry].launch((n,), [*args, Scalar("q", n)])

    def _upload(self, array: Array) -> Buffer:
        buffer = self._device.allocate(array.nbytes)
        self._device.copy(buffer, array)
        return buffer

    def _download(self, buffer: Buffer) -> Array:
        array = np.empty(buffer.nbytes // 4, np.float32)
        self._device.copy(array, buffer)
        self._device.synchronize()
        return array


def _data() -> tuple[Array, Array, Array, Array]:
    """Return inputs [B, I], targets [B, O] and weights [I, H], [H, O], the same each time."""
    rng = np.random.default_rng(20)
    x_BI, t_BO, w_IH, w_HO = (
        rng.standard_normal(shape).astype(np.float32) * 0.4 for shape in ((_B, _I), (_B, _O), (_I, _H), (_H, _O))
    )
    return x_BI, t_BO, w_IH, w_HO
