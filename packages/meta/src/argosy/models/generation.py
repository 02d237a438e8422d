"""What is asked for when a language model generates: prompts of several kinds, settings, and where texts end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

import argosy as paddle
from argosy_infer.llm import BeamOptions, GenerationSettings, SamplingOptions, Tokenizer

__all__ = ["Ids", "Messages", "Request", "beams_of", "is_batch", "is_text", "lists_of", "request_of"]

Ids = Sequence[int]
Messages = Sequence[Mapping[str, Any]]
_OF_TRANSFORMERS = {
    "do_sample": "temperature (0 takes the likeliest token)",
    "max_length": "max_new_tokens", "max_tokens": "max_new_tokens", "min_length": "min_new_tokens",
    "stop_strings": "stop", "eos_token_id": "stop", "bad_words_ids": "bad_words", "suppress_tokens": "suppressed",
    "assistant_model": "speculative=True: the model's own modules guess",
    "generation_config": "options, an argosy_infer.SamplingOptions", "streamer": "stream(...), an iterator",
}  # fmt: skip
"""What has another name here."""
_NOT_IMPLEMENTED = (
    "num_beam_groups", "diversity_penalty", "constraints", "force_words_ids", "guidance_scale", "negative_prompt_ids",
    "penalty_alpha", "prompt_lookup_num_tokens", "forced_bos_token_id", "forced_eos_token_id", "sequence_bias",
    "encoder_repetition_penalty", "dola_layers",
)  # fmt: skip
"""Settings of transformers that have no code: groups of beams, contrastive search, guidance, forced tokens."""


@dataclass(frozen=True)
class Request:
    """What follows ``ids``: ``most`` tokens, not fewer than ``least``, chosen by ``sampling`` until one of ``ends``, or
    until one of ``texts`` has come."""

    ids: list[int]
    most: int
    least: int
    sampling: SamplingOptions
    ends: tuple[int, ...]
    texts: tuple[str, ...]


def lists_of(prompt: Any) -> Any:
    """Arrays and tensors as lists, at any depth."""
    if isinstance(prompt, (np.ndarray, paddle.Tensor)):
        return prompt.tolist()
    return [lists_of(each) for each in prompt] if isinstance(prompt, (list, tuple)) else prompt


def is_text(prompt: Any) -> bool:
    """Whether a prompt is a text, or the messages of a chat, and not ids."""
    return isinstance(prompt, str) or (_is_list(prompt) and isinstance(prompt[0], Mapping))


def is_batch(prompt: Any) -> bool:
    """Whether there are several prompts."""
    return _is_list(prompt) and (isinstance(prompt[0], str) or _is_list(prompt[0]))


def _is_list(prompt: Any) -> bool:
    return isinstance(prompt, Sequence) and not isinstance(prompt, str) and len(prompt) > 0


def request_of(
    prompt: Any,
    tokenizer: Tokenizer | None,
    settings: GenerationSettings,
    options: SamplingOptions | None,
    stop: str | int | Sequence[str | int],
    room: int,
    changes: Mapping[str, Any],
) -> Request:
    """The request of one prompt. ``room``: how many tokens a model has positions for.

    Raises TypeError for names that are no settings, saying what they are here, NotImplementedError for settings of the
    folder and of transformers that are not implemented, ValueError for texts that should end ids.
    """
    known = {field.name for field in fields(SamplingOptions)} | {"max_new_tokens", "min_new_tokens"}
    for name in sorted(changes.keys() - known):
        if name in _NOT_IMPLEMENTED:
            raise NotImplementedError(f"generate() has no code for {name!r}")
        meant = _OF_TRANSFORMERS.get(name)
        hint = f"give {meant}" if meant else f"there are stop, options, {', '.join(sorted(known))}"
        raise TypeError(f"generate() has no setting {name!r}: {hint}")
    if options is None and settings.missing:
        missing = ", ".join(settings.missing)
        raise NotImplementedError(f"generation_config.json asks for {missing}; pass options=SamplingOptions(...)")
    ids = _ids_of(prompt, tokenizer)
    own = {name: value for name, value in changes.items() if not name.endswith("_new_tokens")}
    most, least = changes.get("max_new_tokens"), changes.get("min_new_tokens")
    ends = (stop,) if isinstance(stop, (str, int)) else tuple(stop)
    texts = tuple(each for each in ends if isinstance(each, str))
    if texts and not is_text(prompt):
        raise ValueError(f"texts end texts, tokens end ids: got stop={stop!r:.80} for a prompt of ids")
    return Request(
        ids,
        min(settings.max_new_tokens, max(room - len(ids) + 1, 1)) if most is None else most,
        (0 if options else settings.min_new_tokens) if least is None else least,
        replace(options or settings.sampling, **own),
        (*settings.stop, *(each for each in ends if not isinstance(each, str))),
        texts,
    )


def beams_of(settings: GenerationSettings, options: SamplingOptions | None, changes: dict[str, Any]) -> BeamOptions:
    """The beams that ``num_beams``, ``length_penalty`` and ``early_stopping`` ask for, which are taken out of
    ``changes``; those of the folder's settings unless there are ``options``. Raises ValueError for other values."""
    names = {"num_beams": "count", "length_penalty": "length_penalty", "early_stopping": "early_stopping"}
    asked = {own: changes.pop(name, None) for name, own in names.items()}
    given = {own: value for own, value in asked.items() if value is not None}
    return replace(BeamOptions() if options else settings.beams, **given)


def _ids_of(prompt: Any, tokenizer: Tokenizer | None) -> list[int]:
    if not is_text(prompt):
        return list(prompt)
    assert tokenizer is not None
    return tokenizer.encode(prompt) if isinstance(prompt, str) else tokenizer.chat(prompt)
