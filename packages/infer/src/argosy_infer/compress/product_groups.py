"""Weight products of a program that passes round: which they are, those with the same inputs together, and the program
with what takes their place. Grouped products are among them, expert by expert.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from argosy_infer.compress.calibration import Inputs, observe_inputs
from argosy_infer.compress.folding import Producer, find_producers
from argosy_infer.compress.packing import LayerReport, QuantizationReport
from argosy_infer.compress.perplexity import perplexity
from argosy_infer.export import LoadedProgram
from argosy_infer.latent_attention import latent_weights
from argosy_infer.weights import (
    SCALED_INPUTS,
    Replacement,
    WeightProduct,
    find_expert_products,
    find_weight_products,
    replace_products,
)
from argosy_tensorcore.wait_notice import count_steps

__all__ = ["CalibrationData", "GroupMember", "ProductGroup", "Replaced", "choose_products", "replace_groups"]

Array = np.ndarray[Any, Any]
CalibrationData = Iterable[Sequence[Any] | Mapping[str, Any]]
Replaced = tuple[Sequence[tuple[Replacement, LayerReport]], "Array | None"]
"""What takes the place of each product of a group, and factors [in], or [experts, in], that its producer multiplies
from then on."""


@dataclass(frozen=True)
class GroupMember:
    """A product, its ``matrices`` [in, out] (one, or one of each expert), and the ``inputs`` that were observed of each
    (none without data; of no rows where data chose an expert for no token)."""

    product: WeightProduct
    matrices: tuple[Array, ...]
    inputs: tuple[Inputs, ...]


@dataclass(frozen=True)
class ProductGroup:
    """Products with the same inputs, and what makes these, if that takes factors of theirs (None: nothing does)."""

    members: tuple[GroupMember, ...]
    producer: Producer | None

    def members_of(self, expert: int) -> list[GroupMember]:
        """The products of one expert."""
        return [GroupMember(m.product, (m.matrices[expert],), (m.inputs[expert],)) for m in self.members]


def choose_products(
    loaded: LoadedProgram, bits: int, group_size: int, skip: Sequence[str] = ()
) -> tuple[dict[str, WeightProduct], dict[str, str]]:
    """The weight products that have such a form by the weight's name, and why others have none. Raises ValueError for
    a pattern of ``skip`` that is of no weight."""
    found, skipped = find_weight_products(loaded.program)
    experts, others = find_expert_products(loaded.program)
    found, skipped = {**found, **experts}, {**skipped, **others}
    unknown = [pattern for pattern in skip if not any(fnmatchcase(name, pattern) for name in (*found, *skipped))]
    if unknown:
        raise ValueError(f"skip: {unknown[0]!r} is no weight of a product; there are {', '.join(found)}")
    latent = latent_weights(loaded.program)
    for name, product in list(found.items()):
        reason = _explain_refusal(product, loaded.states, bits, group_size)
        reason = "heads make keys and values of cached channels by it" if name in latent else reason
        reason = "it was to be skipped" if any(fnmatchcase(name, pattern) for pattern in skip) else reason
        if reason:
            skipped[name] = reason
            del found[name]
    return found, skipped


def _explain_refusal(product: WeightProduct, states: Mapping[str, Array], bits: int, group_size: int) -> str:
    """Why a weight has no such form; empty where it has."""
    size, out = product.matrices(states)[0].shape
    if bits == 4 and out % 2 and product.chosen is None:
        return f"{out} outputs do not fill bytes of two"
    if group_size > 0 and size % group_size:
        return f"{size} inputs are no multiple of {group_size}"
    return ""


def replace_groups(
    loaded: LoadedProgram,
    bits: int,
    group_size: int,
    replace: Callable[[ProductGroup], Replaced],
    data: CalibrationData | None = None,
    evaluation: Array | None = None,
    skip: Sequence[str] = (),
) -> tuple[LoadedProgram, QuantizationReport]:
    """The program with what ``replace`` gives in the place of its weight products that have such a form.

    ``evaluation``: the tokens that perplexity is measured on; ``skip``: names or patterns of weights that stay."""
    found, skipped = choose_products(loaded, bits, group_size, skip)
    observed = {} if data is None else observe_inputs(loaded, list(found.values()), data)
    made, layers, folded, scaled = {}, {}, [], list[str](loaded.program.attributes.get(SCALED_INPUTS, ()))
    for group in count_steps(_groups(loaded, found, observed), "layers"):
        replaced, given = replace(group)
        for member, (replacement, report) in zip(group.members, replaced, strict=True):
            made[member.product], layers[member.product.name] = replacement, report
        if given is not None and group.producer is not None:
            folded.append((group.producer, given))
            scaled += [member.product.name for member in group.members]
            scaled += [reader.name for reader in group.producer.readers]
    compressed = replace_products(loaded, made)
    states = dict(compressed.states)
    for producer, given in folded:
        producer.scale(states, given)
    if scaled:
        compressed.program.attributes[SCALED_INPUTS] = tuple(scaled)
    compressed = LoadedProgram(compressed.program, states)
    measured = None if evaluation is None else (perplexity(loaded, evaluation), perplexity(compressed, evaluation))
    return compressed, QuantizationReport(tuple(layers[name] for name in found), skipped, perplexities=measured)


def _groups(
    loaded: LoadedProgram, found: Mapping[str, WeightProduct], observed: Mapping[str, Sequence[Inputs]]
) -> list[ProductGroup]:
    """The products by what makes their inputs, in the program's order: a layer, as far as they go together."""
    producers = find_producers(loaded.program, list(found.values()))
    groups: dict[Any, list[GroupMember]] = {}
    for name, product in found.items():
        member = GroupMember(product, product.matrices(loaded.states), tuple(observed.get(name, ())))
        groups.setdefault(producers.get(product.x, product.x), []).append(member)
    return [
        ProductGroup(tuple(members), source if isinstance(source, Producer) else None)
        for source, members in groups.items()
    ]
