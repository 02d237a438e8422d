"""Which module of ``argosy_phi_ops.ops`` declares which operator, so that nothing is imported before it is used.

Committed; ``python -m argosy_phi_ops.index`` writes it anew after an operator was added, and a test compares.
"""

from __future__ import annotations

__all__ = ["MODULES", "scan"]

# fmt: off
MODULES: dict[str, str] = {
    # linalg
    "matmul": "linalg",
    # math
    "add": "math", "divide": "math", "multiply": "math", "pow": "math", "rsqrt": "math", "subtract": "math",
}
# fmt: on


def scan() -> dict[str, str]:
    """The table as the sources stand: a top-level function decorated with ``@operator(...)`` is a declaration."""
    import ast
    from pathlib import Path

    found: dict[str, str] = {}
    for path in sorted((Path(__file__).parent / "ops").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and any(_is_operator(d) for d in node.decorator_list):
                found[node.name.rstrip("_")] = path.stem
    return dict(sorted(found.items()))


def _is_operator(decorator: object) -> bool:
    name = getattr(getattr(decorator, "func", None), "id", "")
    return name == "operator"


def _rewrite() -> None:
    from pathlib import Path

    path = Path(__file__)
    head, _, rest = path.read_text(encoding="utf-8").partition("# fmt: off\n")
    tail = rest.partition("# fmt: on\n")[2]
    by_module: dict[str, list[str]] = {}
    for name, module in scan().items():
        by_module.setdefault(module, []).append(name)
    lines = ["MODULES: dict[str, str] = {"]
    for module, names in sorted(by_module.items()):
        line = "    " + f"# {module}"
        lines.append(line)
        row = "   "
        for name in names:
            entry = f' "{name}": "{module}",'
            if len(row) + len(entry) > 110:
                lines.append(row)
                row = "   "
            row += entry
        lines.append(row)
    path.write_text(head + "# fmt: off\n" + "\n".join([*lines, "}"]) + "\n# fmt: on\n" + tail, encoding="utf-8")


if __name__ == "__main__":
    _rewrite()
