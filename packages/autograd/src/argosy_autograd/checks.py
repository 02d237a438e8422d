"""Checks of derivatives against finite differences, to any order.

Forward mode is compared with a central difference along random directions, reverse mode with forward mode by
the identity ``<g, J v> = <J* g, v>``; higher orders by checking the gradient program itself in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from argosy_autograd.activity import has_gradient
from argosy_autograd.engine import grad
from argosy_autograd.transform import jvp_program, vjp_program
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.reference.interpreter import ProgramPlan, interpret
from argosy_pir import Program
from argosy_tensorcore.tensor import Tensor

__all__ = ["check_grads", "check_program"]

Array = np.ndarray[Any, Any]


def check_program(
    program: Program,
    inputs: Sequence[Array],
    order: int = 2,
    step: float = 1e-5,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    seed: int = 0,
    differences: bool = True,
    kinks: bool = False,
    constants: Collection[int] = (),
) -> None:
    """Check both modes of the derivatives of ``program`` (primitives, no states) at ``inputs`` (float64 or
    complex128).

    ``order`` 2 checks the derivatives of the gradient as well, to ten times the tolerances, and so on. With ``kinks``
    elements are left out whose differences to either side disagree; without ``differences`` only the two modes are
    compared. The inputs numbered in ``constants`` stay where they are. Raises ``AssertionError`` naming the mode and
    the output or input that disagrees.
    """
    rng = np.random.default_rng(seed)
    moving = [i for i, value in enumerate(program.inputs) if has_gradient(value)]
    ends = [i for i, value in enumerate(program.outputs) if has_gradient(value)]
    directions = [_random_like(inputs[i], rng) * (i not in constants) for i in moving]
    tangents = _outputs(jvp_program(program), [*inputs, *directions])[len(program.outputs) :]
    expected = tangents
    if differences:
        expected, smooth = _difference(program, inputs, moving, ends, directions, step)
        if kinks:
            expected = [np.where(s, e, t) for s, e, t in zip(smooth, expected, tangents, strict=True)]
    for i, got, want in zip(ends, tangents, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol, atol, err_msg=f"forward derivative of output {i} of {program.name}")
    cotangents = [_random_like(t, rng) for t in tangents]
    gradient = vjp_program(program)
    pulled = _outputs(gradient, [*inputs, *cotangents])[len(program.outputs) :]
    left, right = _inner_product(cotangents, tangents), _inner_product(pulled, directions)
    np.testing.assert_allclose(
        right, left, 1e-8, 1e-8, err_msg=f"reverse derivative of {program.name} is not the transpose of the forward one"
    )
    if order > 1:
        check_program(
            _gradients_only(gradient, len(ends)), [*inputs, *cotangents], order - 1, step, rtol * 10, atol * 10,
            seed + 1, differences, kinks, constants,
        )  # fmt: skip


def _gradients_only(program: Program, ends: int) -> Program:
    count = len(program.inputs) - ends
    kept = program.outputs[-sum(has_gradient(v) for v in program.inputs[:count]) :]
    program.set_outputs(kept)
    program.name += "'"
    return program


def _outputs(program: Program, inputs: Sequence[Array]) -> list[Array]:
    return interpret(program, list(inputs))[0]


def _random_like(x: Array, rng: np.random.Generator) -> Array:
    v = rng.standard_normal(np.shape(x))
    return np.asarray(v + 1j * rng.standard_normal(np.shape(x)) if np.iscomplexobj(x) else v, np.asarray(x).dtype)


def _difference(
    program: Program,
    inputs: Sequence[Array],
    moving: Sequence[int],
    ends: Sequence[int],
    directions: Sequence[Array],
    step: float,
) -> tuple[list[Array], list[Array]]:
    """Central differences, and where the differences to either side agree."""
    plan = ProgramPlan(program)

    def outputs_at(distance: float) -> list[Array]:
        moved = list(inputs)
        for i, v in zip(moving, directions, strict=True):
            moved[i] = np.asarray(moved[i] + distance * v)
        outputs = plan.run(moved)[0]
        return [outputs[i] for i in ends]

    behind, here, ahead = outputs_at(-step), outputs_at(0.0), outputs_at(step)
    smooth = [
        np.isclose((b - h) / step, (h - a) / step, rtol=1e-2, atol=1e-2)
        for a, h, b in zip(behind, here, ahead, strict=True)
    ]
    return [(b - a) / (2 * step) for a, b in zip(behind, ahead, strict=True)], smooth


def _inner_product(xs: Sequence[Array], ys: Sequence[Array]) -> float:
    """The real inner product."""
    return float(sum(np.sum((np.conj(x) * y).real) for x, y in zip(xs, ys, strict=True)))


def check_grads(
    function: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    step: float | None = None,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    complex_step: bool = False,
    seed: int = 0,
) -> None:
    """Check the eager gradient of ``function`` of tensors at ``args`` (float64 arrays), and that of the
    gradient up to ``order``.

    The reference is a central difference, or with ``complex_step`` the imaginary part of ``function(x + i h v)
    / h``, which has no cancellation but needs a function that is analytic. Raises ``AssertionError``.
    """
    rng = np.random.default_rng(seed)
    arrays = [np.asarray(a, np.float64) for a in args]
    directions = [_random_like(a, rng) for a in arrays]
    leaves = [Tensor(a, stop_gradient=False) for a in arrays]
    y = function(*leaves)
    g = _random_like(np.asarray(y.numpy()), rng)
    found = grad(y, leaves, Tensor(g), allow_unused=True)
    pulled = sum(_inner_product([d], [p.numpy()]) for d, p in zip(directions, found, strict=True) if p is not None)
    moved = (
        _complex_step(function, arrays, directions) if complex_step else _quotient(function, arrays, directions, step)
    )
    np.testing.assert_allclose(pulled, np.sum(moved * g), rtol, atol, err_msg=f"gradient of order {seed + 1}")
    if order > 1:
        multiply = get_operator("multiply")

        def gradient(*xs: Tensor) -> Any:
            inner = [x if not x.stop_gradient else x.detach() for x in xs]
            for x in inner:
                x.stop_gradient = False
            made = grad(function(*inner), inner, Tensor(g.astype(inner[0].dtype.numpy)), None, True, True, True)
            parts = [multiply(p, Tensor(d)).sum() for p, d in zip(made, directions, strict=True) if p is not None]
            total = parts[0]
            for part in parts[1:]:
                total = total + part
            return total

        check_grads(gradient, arrays, order - 1, step, rtol * 10, atol * 10, False, seed + 1)


def _quotient(
    function: Callable[..., Any], arrays: Sequence[Array], directions: Sequence[Array], step: float | None
) -> Array:
    h = 1e-5 if step is None else step
    ahead, behind = (
        function(*[Tensor(a + s * v) for a, v in zip(arrays, directions, strict=True)]).numpy() for s in (h, -h)
    )
    return np.asarray((ahead - behind) / (2 * h))


def _complex_step(function: Callable[..., Any], arrays: Sequence[Array], directions: Sequence[Array]) -> Array:
    h = 1e-30
    moved = function(*[Tensor(a + 1j * h * v) for a, v in zip(arrays, directions, strict=True)])
    return np.asarray(moved.numpy().imag / h)
