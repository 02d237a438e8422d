"""The same for bfloat16, under the names of Paddle's inner package."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from argosy.static.amp.decoration import OptimizerWithMixedPrecision, decorate
from argosy.static.amp.lists import AutoMixedPrecisionLists, fp16_guard

__all__ = ["AutoMixedPrecisionListsBF16", "bf16_guard", "decorate_bf16"]

bf16_guard = fp16_guard


class AutoMixedPrecisionListsBF16(AutoMixedPrecisionLists):
    """:class:`AutoMixedPrecisionLists` for bfloat16."""

    def __init__(
        self,
        custom_bf16_list: Iterable[str] | None = None,
        custom_fp32_list: Iterable[str] | None = None,
        custom_fp32_varnames: Iterable[str] | None = None,
    ) -> None:
        super().__init__(custom_bf16_list, custom_fp32_list, custom_fp32_varnames, "bfloat16")


def decorate_bf16(
    optimizer: Any,
    amp_lists: AutoMixedPrecisionLists | None = None,
    use_pure_bf16: bool = False,
    use_bf16_guard: bool | None = None,
) -> OptimizerWithMixedPrecision:
    """:func:`decorate` for bfloat16, which needs no scaling."""
    return decorate(optimizer, amp_lists, level="O2" if use_pure_bf16 else "O1", dtype="bfloat16")
