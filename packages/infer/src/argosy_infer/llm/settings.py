"""Generation settings of a folder: what ``generation_config.json`` says of sampling and of where to stop."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any

from argosy_infer.llm.beams import BeamOptions
from argosy_infer.llm.sampling import SamplingOptions

__all__ = ["GenerationSettings", "SettingsError"]

_NEUTRAL: dict[str, Any] = {
    "num_beam_groups": 1, "diversity_penalty": 0.0, "num_return_sequences": 1, "guidance_scale": 1.0,
    "penalty_alpha": 0.0, "encoder_repetition_penalty": 1.0, "encoder_no_repeat_ngram_size": 0,
    "begin_suppress_tokens": None, "forced_bos_token_id": None, "forced_eos_token_id": None, "sequence_bias": None,
    "constraints": None, "exponential_decay_length_penalty": None, "min_length": 0,
}  # fmt: skip
_BEAMS = {"num_beams": "count", "length_penalty": "length_penalty", "early_stopping": "early_stopping"}
_PENALTIES = ("repetition_penalty", "no_repeat_ngram_size")
_CUTOFFS = ("temperature", "top_k", "top_p", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff")


class SettingsError(ValueError):
    """A ``generation_config.json`` that is damaged; the message names file and key."""


@dataclass(frozen=True)
class GenerationSettings:
    """How a model is meant to generate: ``sampling`` (greedy unless it samples), tokens that end a text (``stop``), and
    how many to make when nothing else is said, and before a text may end; ``beams`` where it searches. ``missing``:
    settings of the file that are not implemented."""

    sampling: SamplingOptions = field(default_factory=SamplingOptions)
    stop: tuple[int, ...] = ()
    max_new_tokens: int = 128
    min_new_tokens: int = 0
    missing: tuple[str, ...] = ()
    beams: BeamOptions = field(default_factory=BeamOptions)

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> GenerationSettings:
        """Those of a folder: of ``generation_config.json``, and the tokens that ``config.json`` ends at where that says
        nothing of them. Raises SettingsError."""
        own, model = (_table(folder, name) for name in ("generation_config.json", "config.json"))
        ends = own.get("eos_token_id", model.get("eos_token_id"))
        stop = tuple(ends) if isinstance(ends, list) else () if ends is None else (ends,)
        if not all(isinstance(token, int) and not isinstance(token, bool) for token in stop):
            raise SettingsError(f"generation_config.json: 'eos_token_id' should be whole numbers, got {ends!r:.80}")
        missing = tuple(name for name, value in _NEUTRAL.items() if own.get(name) not in (None, value))
        draws, beams = bool(own.get("do_sample", False)), _beams(own)
        missing += ("num_beams beside do_sample",) if draws and beams.count > 1 else ()
        names = (*_PENALTIES, *(_CUTOFFS if draws else ()))
        numbers = {name: _number(own, name) for name in names if own.get(name) is not None}
        words = {"bad_words": tuple(map(tuple, _lists(own, "bad_words_ids"))), "suppressed": _ids(own)}
        try:
            sampling = SamplingOptions(**({"temperature": 1.0, "top_k": 50} if draws else {}) | numbers | words)
        except (TypeError, ValueError) as error:
            raise SettingsError(f"generation_config.json: {error}") from None
        most, least = (int(_number(own, f"{name}_new_tokens") or 0) for name in ("max", "min"))
        return cls(sampling, stop, most or 128, least, missing, beams)

    def files(self) -> dict[str, bytes]:
        """The contents of the file that :meth:`read` reads, by name. What is not implemented is not in it."""
        sampling = self.sampling
        table: dict[str, Any] = {"do_sample": sampling.temperature > 0, "eos_token_id": list(self.stop)}
        for name in (*_PENALTIES, *(_CUTOFFS if sampling.temperature > 0 else ())):
            table[name] = getattr(sampling, name)
        for name, words in (("bad_words_ids", sampling.bad_words), ("suppress_tokens", sampling.suppressed)):
            if words:
                table[name] = words
        if self.beams.count > 1:
            table |= {own: getattr(self.beams, name) for own, name in _BEAMS.items()}
        table |= {"max_new_tokens": self.max_new_tokens, "min_new_tokens": self.min_new_tokens}
        return {"generation_config.json": json.dumps(table, indent=2).encode()}


def _beams(table: dict[str, Any]) -> BeamOptions:
    given = {name: table[own] for own, name in _BEAMS.items() if table.get(own) is not None}
    try:
        return BeamOptions(**given)
    except ValueError as error:
        raise SettingsError(f"generation_config.json: {error}") from None


def _ids(table: dict[str, Any], name: str = "suppress_tokens") -> tuple[int, ...]:
    (ids,) = _lists({name: [table.get(name) or [0]]}, name)
    return tuple(ids) if table.get(name) else ()


def _lists(table: dict[str, Any], name: str) -> list[list[int]]:
    """Lists of tokens."""
    value = table.get(name) or []
    fits = isinstance(value, list) and all(
        isinstance(ids, list) and ids and all(type(token) is int and token >= 0 for token in ids) for ids in value
    )
    if not fits:
        raise SettingsError(f"generation_config.json: {name!r} should be lists of tokens, got {value!r:.80}")
    return value


def _number(table: dict[str, Any], name: str) -> Any:
    value = table.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e300):
        raise SettingsError(f"generation_config.json: {name!r} should be a number, got {value!r:.80}")
    return value


def _table(folder: str | os.PathLike[str], name: str) -> dict[str, Any]:
    path = os.path.join(os.fspath(folder), name)
    try:
        with open(path, encoding="utf-8") as file:
            table = json.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsError(f"{path} is no JSON text: {error}") from None
    if not isinstance(table, dict):
        raise SettingsError(f"{path}: expected a JSON object, got {type(table).__name__}")
    return table
