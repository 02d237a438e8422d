"""What an example's answers amount to: the same text, the same form of random numbers, another text, or an error."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

__all__ = ["OUTCOMES", "judge"]

OUTCOMES = {
    "same": "prints what is documented, or what the wheel prints",
    "random": "prints random numbers in the documented form",
    "differs": "prints something else",
    "fails": "raises where the wheel does not",
    "apart": "needs another device, network access or files; or the wheel itself fails",
}
_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?|\b(?:inf|nan)\b")
_APART = re.compile(r"REQUIRES\((?:.*env:.*(?:GPU|XPU|DISTRIBUTED|CUSTOM).*)\)|doctest: \+SKIP")
_TOLERANCE = 1e-4

Answer = dict[str, Any]


def judge(steps: Sequence[tuple[str, str]], ours: Answer, wheel: Answer, again: Answer) -> tuple[str, str]:
    """The outcome, one of :data:`OUTCOMES`, and what it shows. ``again``: the wheel's answer with other seeds."""
    if any(_APART.search(source) for source, _ in steps[:2]):
        return "apart", ""
    random = False
    for i, (source, wanted) in enumerate(steps):
        if i >= len(ours["printed"]):
            return ("apart" if wheel["error"] else "fails"), f"{source.strip()[:200]} -> {ours['error']}"
        if i >= len(wheel["printed"]):
            references, steady = [wanted], True
        else:
            references = [wanted, wheel["printed"][i]]
            steady = i < len(again["printed"]) and _same(*references[1:], again["printed"][i])
        shown = ours["printed"][i]
        if not wanted.strip() or "doctest: +SKIP" in source or any(_same(shown, text) for text in references):
            continue
        if steady or _form(shown) not in map(_form, references):
            outcome = "differs" if not wheel["error"] or i < len(wheel["printed"]) else "apart"
            return outcome, f"{source.strip()[:200]}\n--- ours\n{shown[:600]}\n--- wheel\n{references[-1][:600]}"
        random = True
    return ("random" if random else "same"), ""


def _plain(text: str) -> str:
    """Without what is no part of the answer: spacing, quotes, comments, the device and the module's name."""
    text = text if "Tensor(" in text else re.sub(r"#.*", "", text)
    text = re.sub(r"CPUPlace|Place\(gpu:0\)|Place\(gpu_pinned\)", "Place(cpu)", text)
    text = re.sub(r"\b0x[0-9a-f]+\b", "0x", text).replace("argosy", "paddle").replace('"', "'")
    return re.sub(r"\s+", "", text)


def _form(text: str) -> str:
    """The text with each number made one sign, but for what stands before a tensor's values."""
    head, found, values = text.partition("stop_gradient=")
    if not found:
        head, values = "", text
    values = _NUMBER.sub("@", values)
    return _plain(head) + re.sub(r"@(?:,?@)*", "@", re.sub(r"[-+]", "", _plain(values)))


def _same(shown: str, wanted: str) -> bool:
    if _plain(shown) == _plain(wanted):
        return True
    ours, theirs = _NUMBER.findall(_spaced(shown)), _NUMBER.findall(_spaced(wanted))
    if len(ours) != len(theirs) or _masked(shown) != _masked(wanted):
        return False
    return all(_close(float(a), float(b)) for a, b in zip(ours, theirs, strict=True))


def _spaced(text: str) -> str:
    return re.sub(r"CPUPlace|Place\(gpu:0\)", "Place(cpu)", text)


def _masked(text: str) -> str:
    return re.sub(r"[-+]", "", _plain(_NUMBER.sub("@", _spaced(text))))


def _close(a: float, b: float) -> bool:
    return a == b or (a != a and b != b) or abs(a - b) <= _TOLERANCE * max(1, abs(a), abs(b))
