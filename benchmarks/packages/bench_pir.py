"""Programs as data: building, text, bytes, passes; of 1,000 operations."""

from __future__ import annotations

from typing import Any

from argosy_pir import Builder, Program, TensorType, from_bytes, to_bytes
from argosy_pir.passes import PassManager


def program(operations: int = 1000) -> Program:
    """A chain of sums, of which each is made twice."""
    made = Program("chain")
    x = made.add_input(TensorType((4, 4), "float32"), "x")
    builder, value = Builder(made.block), x
    for _ in range(operations // 3):
        first, second = (builder.create("test.add", [value, x]).result for _ in range(2))
        value = builder.create("test.sub", [first, second]).result
    made.set_outputs([value])
    return made


def test_build(benchmark: Any) -> None:
    benchmark(program)


def test_print_and_parse(benchmark: Any) -> None:
    made = program()
    benchmark(lambda: Program.parse(str(made)))


def test_bytes_there_and_back(benchmark: Any) -> None:
    made = program()
    benchmark(lambda: from_bytes(to_bytes(made)))


def test_cse_and_dce(benchmark: Any) -> None:
    benchmark.pedantic(
        lambda made: PassManager("cse,dce", verify=False).run(made), setup=lambda: ((program(),), {}), rounds=20
    )


def test_verify(benchmark: Any) -> None:
    made = program()
    benchmark(made.verify)
