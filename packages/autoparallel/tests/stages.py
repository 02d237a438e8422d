"""Stages for tests of lists and schedules: signatures, functions that compute numbers, and random lists."""

import numpy as np

from argosy_autoparallel.schedule import (
    Free,
    InstructionList,
    Port,
    Receive,
    Ref,
    Run,
    Send,
    Signature,
    Start,
    Wait,
    connect,
)
from argosy_pir.types import TensorType

T = TensorType([4], "float32")


def signatures(stages):
    """Pieces of each stage: activations and gradients by boundary, what is saved by stage and microbatch."""
    found = {}
    for s in range(stages):
        first, last = s == 0, s == stages - 1
        x, y = Port(f"x.{s}", T, "microbatch"), Port(f"x.{s + 1}", T, "microbatch")
        g, above = Port(f"g.{s}", T, "microbatch"), () if last else (Port(f"g.{s + 1}", T, "microbatch"),)
        saved, rest = Port("saved", T), Port("rest", T)
        grad, weight = Port("grad", T, "chunk"), Port("weight", T, "chunk")
        below = () if first else (g,)
        found["forward", s] = Signature((x, weight), (saved,) if last else (y, saved))
        found["backward", s] = Signature((saved, weight, grad, *above), (grad, *below))
        found["backward_input", s] = Signature((saved, weight, *above), (rest, *below))
        found["backward_weight", s] = Signature((saved, rest, grad), (grad,))
    return found


def functions(stages, sleep=lambda name: None):
    """``y = weight * x``, and the sum of squares as loss after the last stage."""
    found = {}
    for s in range(stages):
        first, last = s == 0, s == stages - 1

        def forward(x, weight, last=last):
            sleep("forward")
            return x if last else (weight * x, x)

        def above(saved, weight, g):
            return g[0] if g else 2 * weight * saved  # of the loss (weight * x) ** 2 by weight * x

        def backward(saved, weight, grad, *g, first=first):
            sleep("backward")
            dy = above(saved, weight, g)
            return (grad + dy * saved,) if first else (grad + dy * saved, dy * weight)

        def backward_input(saved, weight, *g, first=first):
            sleep("backward_input")
            dy = above(saved, weight, g)
            return (dy,) if first else (dy, dy * weight)

        def backward_weight(saved, dy, grad):
            sleep("backward_weight")
            return grad + dy * saved

        found |= {("forward", s): forward, ("backward", s): backward, ("backward_input", s): backward_input,
                  ("backward_weight", s): backward_weight}  # fmt: skip
    return found


def given(orders, microbatches):
    """Types of weights, accumulated gradients and inputs on each rank."""
    made = []
    for order in orders:
        mine = {Ref(name, (run.chunk,)): T for run in order for name in ("weight", "grad")}
        if any(run.chunk == 0 for run in order):
            mine |= {Ref("x.0", (i,)): T for i in range(microbatches)}
        made.append(mine)
    return made


def values(types):
    """Numbers for what is given: zero gradients, other small integers, exact in every order of addition."""
    made = []
    for mine in types:
        arrays = {}
        for ref in mine:
            start = 0 if ref.name == "grad" else 1 + ref.at[0] % 2
            arrays[ref] = (np.arange(4) % 2 * (ref.name != "grad") + start).astype(np.float32)
        made.append(arrays)
    return made


def lists_of(orders, stages, microbatches, ahead=1):
    """The lists of all ranks for these orders."""
    return connect(orders, signatures(stages), given(orders, microbatches), ahead)


def pieces():
    """Functions of the pieces of random lists."""
    return {("add", None): lambda x, y: (x + y,)}


def random_lists(draw, size=3):
    """Lists of ranks that compute, send and reduce: a correct program, with instructions changed in some places unless
    ``draw`` is None. Returns the lists and the values that they begin with.
    """
    steps = []
    signature = {("add", None): Signature((Port("a", T, "chunk"), Port("b", T, "none")), (Port("c", T),))}
    for rank in range(size):
        right, left = (rank + 1) % size, (rank - 1) % size
        a, b, got, total, c = Ref("a", (0,)), Ref("b"), Ref("got"), Ref("total"), Ref("c", (0, 0))
        steps.append([
            Receive(got, T, left, 1), Send(b, right, 1), Start("all_reduce", a, total), Run("add", 0, 0), Wait(total),
            Free(c), Wait(got), Start("all_gather", got, Ref("all"), (0, 1, 2)), Wait(Ref("all")), Free(got),
            Run("add", 0, 0), Free(b),
        ])  # fmt: skip
    for _ in range(draw(_small()) if draw else 0):
        rank = draw(_upto(size - 1))
        at = draw(_upto(len(steps[rank]) - 1)) if steps[rank] else 0
        if draw(_upto(2)) == 0 and len(steps[rank]) > 1:
            del steps[rank][at]
        elif at + 1 < len(steps[rank]):
            steps[rank][at : at + 2] = reversed(steps[rank][at : at + 2])
    types = {Ref("a", (0,)): T, Ref("b"): T}
    arrays = [{ref: np.full(4, rank + 1, np.float32) for ref in types} for rank in range(size)]
    return [InstructionList(tuple(mine), signature, types) for mine in steps], arrays


def _small():
    from hypothesis import strategies as st

    return st.integers(0, 2)


def _upto(last):
    from hypothesis import strategies as st

    return st.integers(0, last)
