"""Counting optimisations, and stopping after so many: to find the one that breaks a program.

Every rewrite, fusion and placement that could be left out asks pir's ``spend`` first. The option
``fuel`` (or ``ARGOSY_FUEL`` in the environment, for all programs of a process together, the passes before this package
included) lets only the first so many happen; ``without`` leaves out kinds. The count is the same in every run.
``ARGOSY_FUEL_LOG`` names a file that is told the count and the last step.

Kinds: ``rewrite.<primitive>``, ``fold`` (operations of numbers), ``cse`` (equal operations), ``control`` (native
branches and loops), ``attention``, ``fuse``, ``recompute``, ``in-place``, ``stream``, ``siblings`` (two products from
one read), ``batch-tiling`` (large batches in tiles of rows), ``rematerialise`` (under a memory budget), ``winograd``
(convolutions by minimal filtering).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from argosy_cinn.settings import BATCH_INVARIANT, GUARD, MEMORY_BUDGET, WINOGRAD
from argosy_phi_ops.process_fuel import process_fuel, settle
from argosy_pir.rewrite.fuel import Session, observe

KINDS = (
    "rewrite", "fold", "cse", "control", "join", "attention", "fuse", "recompute", "in-place", "stream", "siblings",
    "batch-tiling", "rematerialise", "winograd",
)  # fmt: skip
#: Steps of passes that lower: what comes later cannot do without them.
ALWAYS = (
    "inline", "symbol-dce", "dce", "dead-result", "split-complex", "widen-narrow", "align-contractions",
    "empty-reduction",
)  # fmt: skip


class Budget:
    """What one compilation may do. It simplifies first, then fuses; either can be done again and does the same.

    ``memory``: the bytes that its intermediate values may need (`argosy_cinn.plan.rematerialisation`); ``guard``: how
    they are guarded (`argosy_cinn.guard`); ``invariant``: whether rows of products are independent of each other to the
    bit (`argosy_cinn.contraction.skinny`)."""

    def __init__(
        self,
        fuel: int | None = None,
        without: Collection[str] = (),
        process: bool = False,
        memory: int | None = None,
        guard: str = "",
        invariant: bool = False,
    ) -> None:
        self.memory, self.guard, self.invariant = memory, guard, invariant
        self.limited = fuel is not None or bool(without)
        self.process = process
        self._fuel = fuel
        self._without = frozenset(without)
        self._simplified = 0
        self._last = ""
        self.spent = 0

    @staticmethod
    def from_options(options: Mapping[str, Any]) -> Budget:
        """The budget that the options or the environment set. Raises ValueError for what they do not know."""
        without = tuple(options.get("without", ()))
        unknown = sorted({kind.partition(".")[0] for kind in without} - set(KINDS))
        if unknown:
            raise ValueError(f"option without: there is no kind {unknown}; there are: {', '.join(KINDS)}")
        how: dict[str, Any] = {
            "memory": MEMORY_BUDGET.resolve(options), "guard": GUARD.resolve(options),
            "invariant": BATCH_INVARIANT.resolve(options),
        }  # fmt: skip
        left_out = without if WINOGRAD.resolve(options) else (*without, "winograd")
        if without or "fuel" in options:
            return Budget(options.get("fuel"), left_out, **how)
        left = process_fuel()
        return Budget(left, left_out, process=left is not None, **how)

    @contextmanager
    def simplification(self) -> Iterator[None]:
        """Within the block programs are simplified."""
        with observe(Session(self._fuel, self._without, ALWAYS)) as session:
            yield
        self._simplified = session.spent
        self._note(session)

    @contextmanager
    def fusion(self) -> Iterator[None]:
        """Within the block a simplified program is fused and placed."""
        left = None if self._fuel is None else self._fuel - self._simplified
        with observe(Session(left, self._without, ALWAYS)) as session:
            yield
        self._note(session, self._simplified)

    def _note(self, session: Session, before: int = 0) -> None:
        self.spent = before + session.spent
        self._last = session.last or self._last

    def settle(self) -> None:
        """Take what was spent from the process's fuel, and write the log."""
        if self.process:
            settle(self.spent, self._last)
