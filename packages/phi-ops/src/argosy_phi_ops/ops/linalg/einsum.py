"""Einstein summation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_tensorcore.tensor import Tensor

# Einstein summation


@operator(promote="same")
def einsum(equation: str, operands: Sequence[Tensor]) -> Tensor:
    """Einstein summation: letters name axes; those the output lacks are summed. ``...`` stands for leading axes.

    Operands are multiplied from left to right, summing each letter as soon as no later operand needs it.
    """
    terms, output = _parse_equation(equation, operands)
    names, result = _diagonalise(terms[0], operands[0])
    for i, (term, operand) in enumerate(zip(terms[1:], operands[1:], strict=True), 1):
        later = set(output).union(*terms[i + 1 :])
        names, result = _contract(names, result, *_diagonalise(term, operand), later)
    lost = tuple(i for i, name in enumerate(names) if name not in output)
    if lost:
        result = prim.reduce_sum(result, axes=lost)
        names = [name for name in names if name in output]
    order = tuple(names.index(name) for name in output)
    return result if order == tuple(range(len(order))) else prim.transpose(result, permutation=order)


def _parse_equation(equation: str, operands: Sequence[Tensor]) -> tuple[list[list[str]], list[str]]:
    """The axis names of each operand and of the output; those of an ellipsis are "0", "1", ... from the right."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    words = left.split(",")
    if len(words) != len(operands):
        raise ShapeError(f"einsum {equation!r} describes {len(words)} operands, got {len(operands)}")
    terms = []
    for word, operand in zip(words, operands, strict=True):
        hidden = operand.ndim - len(word.replace("...", "")) if "..." in word else 0
        names = _spell(word, hidden)
        if len(names) != operand.ndim or hidden < 0:
            raise ShapeError(f"einsum {equation!r}: the term {word!r} does not fit {operand.type}")
        terms.append(names)
    widest = max((sum(name.isdigit() for name in names) for names in terms), default=0)
    if arrow:
        return terms, _spell(right, widest)
    letters = [name for names in terms for name in names if not name.isdigit()]
    once = sorted(name for name in set(letters) if letters.count(name) == 1)
    return terms, [*_spell("...", widest), *once]


def _spell(word: str, hidden: int) -> list[str]:
    before, dots, after = word.partition("...")
    return [*before, *(str(i) for i in reversed(range(hidden))), *after] if dots else list(word)


def _diagonalise(names: list[str], x: Tensor) -> tuple[list[str], Tensor]:
    """Axes with the same name replaced by their diagonal."""
    for name in dict.fromkeys(names):
        places = [i for i, other in enumerate(names) if other == name]
        while len(places) > 1:
            last = places.pop()
            index = [prim.iota(shape=x.shape, axis=axis, dtype="int64") for axis in (places[0], last)]
            x = prim.reduce_sum(prim.select(prim.eq(*index), x, 0), axes=(last,))
            names = [*names[:last], *names[last + 1 :]]
    return names, x


def _contract(left: list[str], x: Tensor, right: list[str], y: Tensor, later: set[str]) -> tuple[list[str], Tensor]:
    """The product of two operands, summed over the shared names that nothing later needs."""
    x, y = _match(left, x, right, y)
    shared = [name for name in left if name in right]
    batch = [name for name in shared if name in later]
    summed = [name for name in shared if name not in later]
    product = prim.dot_general(
        x,
        y,
        lhs_contract=tuple(left.index(n) for n in summed),
        rhs_contract=tuple(right.index(n) for n in summed),
        lhs_batch=tuple(left.index(n) for n in batch),
        rhs_batch=tuple(right.index(n) for n in batch),
    )
    names = [*batch, *(n for n in left if n not in shared), *(n for n in right if n not in shared)]
    return names, product


def _match(left: list[str], x: Tensor, right: list[str], y: Tensor) -> tuple[Tensor, Tensor]:
    """Both operands with shared axes of equal size: those of size one are repeated."""
    sizes: dict[str, Any] = {}
    for names, v in ((left, x), (right, y)):
        for name, n in zip(names, v.shape, strict=True):
            sizes[name] = n if sizes.get(name, 1) == 1 else sizes[name]
            if n not in (1, sizes[name]) and isinstance(n, int) and isinstance(sizes[name], int):
                raise ShapeError(
                    f"einsum: axis {name!r} has {sizes[name]} elements in one operand and {n} in another; "
                    "they should be equal"
                )
    wanted = [tuple(sizes[n] if n in left and n in right else m for n, m in zip(names, v.shape, strict=True))
              for names, v in ((left, x), (right, y))]  # fmt: skip
    return prim.broadcast_to(x, wanted[0]), prim.broadcast_to(y, wanted[1])


@einsum.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    a, b, c = rng.standard_normal((2, 3)), rng.standard_normal((3, 4)), rng.standard_normal((4, 2))
    yield Sample("ij,jk->ik", [a, b])
    yield Sample("ij,jk,kl->li", [a, b, c])
    yield Sample("ij->ji", [a])
    yield Sample("ij,ij", [a, a])
    yield Sample("ij->", [a])
    yield Sample("ii->i", [rng.standard_normal((3, 3))])
    yield Sample("...ij,...jk->...ik", [rng.standard_normal((5, 2, 3)), rng.standard_normal((1, 3, 4))])
    yield Sample("bhqd,bhkd->bhqk", [rng.standard_normal((2, 3, 4, 5)), rng.standard_normal((2, 3, 6, 5))])
    yield Sample("i,j->ij", [a[0], b[0]])
