"""What a compiled program does, as text: kernels, memory, host calls."""

from __future__ import annotations

from typing import Any


def explain(executable: Any) -> str:
    """The segments of a compiled program with their kernel calls, host calls and memory; see also ``report()``.

    Raises ``TypeError`` for what this package did not compile.
    """
    describe = getattr(executable, "describe", None)
    if describe is None:
        raise TypeError(f"explain takes a program compiled by argosy_cinn, got {type(executable).__name__}")
    text: str = describe()
    return text


def describe_assembly(assembly: Any, plan: Any) -> str:
    """The lines of `explain` for one assembled program."""
    lines = [f"arena {plan.arena_bytes} bytes, {len(assembly.kernels)} kernels, {len(assembly.hosts)} host calls"]
    for i, calls in enumerate(assembly.segments):
        lines.append(f"segment {i}: {len(calls)} kernel calls")
        for call in calls:
            chunks = f" in {call.chunks} chunks" if call.chunks > 1 else ""
            lines.append(f"  {call.kernel}{chunks}: {call.text}")
        if i < len(assembly.hosts):
            op = assembly.hosts[i]
            lines.append(f"host: {op.name} ({', '.join(str(v.type) for v in op.operands)}) at {op.location}")
    for value, argument in plan.copies:
        lines.append(f"copy {value.type} to state {argument.index}")
    return "\n".join(lines)
