"""The order of communication that derivatives add.

All ranks must call collectives in one order, which the chain of tokens fixes. Derivatives continue the chain at
the place where they are inserted, and what communicates later continues theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from argosy_phi_ops import prim
from argosy_phi_ops.context import context
from argosy_pir import Builder, Operation, TokenType, Value

__all__ = ["communicate", "token_chain"]

_KEY = "autograd.token_chain"


class _Chain:
    """``last`` is the token that the insertion point finds, then the one that the derivatives leave. It is looked for
    when something communicates: else a program of many derivatives would be searched for each of them."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._start = builder._before.previous if builder._before is not None else builder.block.last
        self._users: list[tuple[Operation, int]] = []
        self._found = False
        self.last: Value | None = None

    def find(self) -> None:
        """Look for the first token, and who reads it, unless that was done."""
        if not self._found:
            self._found = True
            self.last = first = _latest_token(self._builder, self._start)
            self._users = list(first.uses) if first is not None else []

    def close(self) -> None:
        """What communicates later continues the chain."""
        for op, index in self._users:
            assert self.last is not None
            op.set_operand(index, self.last)


@contextmanager
def token_chain(builder: Builder) -> Iterator[None]:
    """Within the block :func:`communicate` continues the chain of tokens that ends before ``builder``'s place."""
    values = context().own_values
    if _KEY in values:  # a derivative inside a derivative: one chain
        yield
        return
    chain = values[_KEY] = _Chain(builder)
    try:
        yield
    finally:
        del values[_KEY]
    chain.close()


def _latest_token(builder: Builder, op: Operation | None) -> Value | None:
    while op is not None:
        if op.results and isinstance(op.results[-1].type, TokenType):
            return op.results[-1]
        op = op.previous
    tokens = [a for a in builder.block.arguments if isinstance(a.type, TokenType)]
    return tokens[-1] if tokens else None


def communicate(name: str, x: Value, **attributes: Any) -> Any:
    """Emit the communication primitive ``name`` on ``x`` at the end of the chain; returns its tensor."""
    chain = context().own_values[_KEY]
    chain.find()
    if chain.last is None:
        chain.last = prim.create_token()
    result, chain.last = getattr(prim, name)(x, chain.last, **attributes)
    return result
