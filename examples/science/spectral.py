"""References by Fourier series on a circle: stiff equations u_t = L u + N(u) by exponential steps of order four."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def wavenumbers(points: int, length: float) -> Array:
    """Angular wavenumbers of numpy's fft."""
    return 2 * np.pi * np.fft.fftfreq(points, length / points)


def evolve(start: Array, linear: Array, nonlinear: Callable[[Array], Array], times: Array, substeps: int) -> Array:
    """Spectra at ``times`` [t, ..., points] from the one at times[0], [..., points], along the last axis.

    ``linear`` are the factors of the spectrum, ``nonlinear`` maps spectra to spectra. ETDRK4 (Cox and Matthews, 2002)
    with the coefficients as contour integrals (Kassam and Trefethen, 2005).
    """
    h = (times[1] - times[0]) / substeps
    full, half = np.exp(h * linear), np.exp(h * linear / 2)
    z = h * linear[:, None] + np.exp(2j * np.pi * (np.arange(1, 65) - 0.5) / 64)
    q = h * ((np.exp(z / 2) - 1) / z).mean(1)
    f1 = h * ((-4 - z + np.exp(z) * (4 - 3 * z + z**2)) / z**3).mean(1)
    f2 = h * ((2 + z + np.exp(z) * (z - 2)) / z**3).mean(1)
    f3 = h * ((-4 - 3 * z - z**2 + np.exp(z) * (4 - z)) / z**3).mean(1)
    found = [start]
    v = start
    for _ in times[1:]:
        for _ in range(substeps):
            n0 = nonlinear(v)
            a = half * v + q * n0
            n1 = nonlinear(a)
            b = half * v + q * n1
            n2 = nonlinear(b)
            n3 = nonlinear(half * a + q * (2 * n2 - n0))
            v = full * v + f1 * n0 + 2 * f2 * (n1 + n2) + f3 * n3
        found.append(v)
    return np.stack(found)
