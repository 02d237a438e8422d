"""Decoding step by step: a decoder gives outputs until all sequences are finished, by beam search for one."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from argosy.argument_checks import validate_call
from argosy.argument_repr import ArgumentRepr
from argosy.nn import functional as F
from argosy.nn.nesting import flatten, map_structure, pack_as

__all__ = ["BeamSearchDecoder", "Decoder", "dynamic_decode"]

_NEVER = -1e9
"""The log-probability of what cannot be."""


class Decoder:
    """What :func:`dynamic_decode` drives: ``initialize``, ``step`` until all is finished, ``finalize``."""

    def initialize(self, inits: Any) -> tuple[Any, Any, Any]:
        """(first inputs, first states, which sequences are finished)."""
        raise NotImplementedError(f"{type(self).__name__} does not define initialize()")

    def step(self, time: Any, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any, Any, Any]:
        """(outputs, next states, next inputs, which sequences are finished)."""
        raise NotImplementedError(f"{type(self).__name__} does not define step()")

    def finalize(self, outputs: Any, final_states: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """(outputs, states) from the outputs of all steps, stacked along time."""
        raise NotImplementedError(f"{type(self).__name__} does not define finalize()")

    @property
    def tracks_own_finished(self) -> bool:
        """Whether ``step`` itself keeps finished sequences finished."""
        return False


class BeamSearchDecoder(ArgumentRepr, Decoder):
    """Beam search over a cell: at each step the ``beam_size`` best continuations of every sample are kept.

    ``embedding_fn`` maps tokens [N, beams] to the cell's inputs, ``output_fn`` its outputs to logits [N, beams,
    vocabulary]. A beam that gave ``end_token`` is finished and gives nothing else.
    """

    OutputWrapper = namedtuple("OutputWrapper", ["scores", "predicted_ids", "parent_ids"])
    StateWrapper = namedtuple("StateWrapper", ["cell_states", "log_probs", "finished", "lengths"])

    @validate_call
    def __init__(
        self,
        cell: Callable[..., Any],
        start_token: int,
        end_token: int,
        beam_size: int,
        embedding_fn: Callable[..., Any] | None = None,
        output_fn: Callable[..., Any] | None = None,
    ) -> None:
        if beam_size < 1:
            raise ValueError(f"BeamSearchDecoder: beam_size is at least 1, got {beam_size}")
        self.cell, self.embedding_fn, self.output_fn = cell, embedding_fn, output_fn
        self.start_token, self.end_token, self.beam_size = start_token, end_token, beam_size

    @staticmethod
    def tile_beam_merge_with_batch(x: Any, beam_size: int) -> Any:
        """x [N, ...] as [N * beam_size, ...]: each sample for all of its beams in a row."""
        return F.repeat_interleave(x, beam_size, axis=0)

    def _split(self, x: Any) -> Any:
        return x.reshape([-1, self.beam_size, *x.shape[1:]])

    def _merge(self, x: Any) -> Any:
        return x.reshape([-1, *x.shape[2:]])

    def _embed(self, tokens: Any) -> Any:
        return tokens if self.embedding_fn is None else self.embedding_fn(tokens)

    def initialize(self, initial_cell_states: Any) -> tuple[Any, Any, Any]:
        """First inputs, states and what is finished; only the first of the equal beams has probability one."""
        beams = map_structure(
            lambda x: self._split(self.tile_beam_merge_with_batch(x, self.beam_size)), initial_cell_states
        )
        if not (states := flatten(beams)):
            raise ValueError(f"BeamSearchDecoder: argument 'initial_cell_states' holds no tensor, got {beams!r}")
        shape = [states[0].shape[0], self.beam_size]
        tokens = F.full(shape, self.start_token, dtype="int64")
        places: Any = F.arange(self.beam_size, dtype="int64")
        log_probs = F.where((places > 0).expand(shape), F.full(shape, _NEVER), F.full(shape, 0.0))
        finished = F.full(shape, False, dtype="bool")
        lengths = F.zeros(shape, dtype="int64")
        return self._embed(tokens), self.StateWrapper(beams, log_probs, finished, lengths), finished

    def step(self, time: Any, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any, Any, Any]:
        """One token more for every beam."""
        merged = map_structure(self._merge, inputs), map_structure(self._merge, states.cell_states)
        outputs, cell_states = self.cell(*merged, **kwargs)
        outputs, cell_states = map_structure(self._split, outputs), map_structure(self._split, cell_states)
        logits = outputs if self.output_fn is None else self.output_fn(outputs)
        found, following = self._search(logits, cell_states, states)
        found.predicted_ids.stop_gradient = True
        return found, following, self._embed(found.predicted_ids), following.finished

    def _search(self, logits: Any, cell_states: Any, states: Any) -> tuple[Any, Any]:
        vocabulary = logits.shape[-1]
        step_log_probs = self._finish_unless(F.log_softmax(logits), states.finished)
        log_probs = step_log_probs + states.log_probs.unsqueeze(2)
        scores, places = F.topk(log_probs.reshape([-1, self.beam_size * vocabulary]), self.beam_size)
        parents, tokens = places // vocabulary, places % vocabulary
        cell_states = map_structure(lambda x: _of_beam(x, parents), cell_states)
        finished = _of_beam(states.finished, parents)
        lengths = _of_beam(states.lengths, parents) + F.logical_not(finished).astype("int64")
        finished = F.logical_or(finished, tokens == self.end_token)
        following = self.StateWrapper(cell_states, scores, finished, lengths)
        return self.OutputWrapper(scores, tokens, parents), following

    def _finish_unless(self, log_probs: Any, finished: Any) -> Any:
        """``log_probs`` [N, beams, vocabulary]; of a finished beam, certainty of the end token."""
        tokens: Any = F.arange(log_probs.shape[-1], dtype="int64")
        certain = (tokens != self.end_token).astype(log_probs.dtype) * _NEVER
        return F.where(finished.unsqueeze(2), certain.expand(log_probs.shape), log_probs)

    def finalize(self, outputs: Any, final_states: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """The tokens [time, N, beams] of whole sequences, best beam first, and the states as they are."""
        return F.gather_tree(outputs.predicted_ids, outputs.parent_ids), final_states

    @property
    def tracks_own_finished(self) -> bool:
        """True: a beam moves from place to place, and what is finished with it."""
        return True


def _of_beam(x: Any, beams: Any) -> Any:
    """x [N, beams, ...] at ``beams`` [N, beams]."""
    rows = F.arange(x.shape[0], dtype="int64").unsqueeze(1).expand(beams.shape)
    return F.gather_nd(x, F.stack([rows, beams], axis=2))


def dynamic_decode(
    decoder: Decoder,
    inits: Any = None,
    max_step_num: int | None = None,
    output_time_major: bool = False,
    impute_finished: bool = False,
    is_test: bool = False,
    return_length: bool = False,
    **kwargs: Any,
) -> Any:
    """Let ``decoder`` take steps until all sequences are finished, or for ``max_step_num`` steps after the first.

    Returns (outputs, last states), with ``return_length`` also the lengths. Outputs are [N, time, ...], with
    ``output_time_major`` [time, N, ...]. ``impute_finished`` keeps the states of finished sequences. Further
    keywords go to ``decoder.step``. How many steps are taken depends on values: it runs eagerly.
    """
    if not all(hasattr(decoder, method) for method in ("initialize", "step", "finalize")):
        raise TypeError(f"dynamic_decode(): argument 'decoder' must be a Decoder, got {decoder!r:.80}")
    if not (max_step_num is None or hasattr(max_step_num, "__index__")):
        raise TypeError(f"dynamic_decode(): argument 'max_step_num' must be an integer, got {max_step_num!r:.80}")
    inputs, states, finished = decoder.initialize(inits)
    lengths = F.zeros(finished.shape, dtype="int64")
    taken: list[Any] = []
    while not bool(F.all(finished)) and (max_step_num is None or len(taken) <= max_step_num):
        time = F.full([1], len(taken), dtype="int64")
        outputs, following, inputs, now_finished = decoder.step(time, inputs, states, **kwargs)
        if decoder.tracks_own_finished:
            lengths = getattr(following, "lengths", lengths)
        else:  # as in Paddle, the step that finishes a sequence counts as after its end
            now_finished = F.logical_or(now_finished, finished)
            lengths = lengths + F.logical_not(now_finished).astype("int64")
            if impute_finished:
                following = map_structure(
                    lambda new, old, done=now_finished: _keep_finished(new, old, done), following, states
                )
        states, finished = following, now_finished
        taken.append(outputs)
    if not taken:
        raise ValueError("dynamic_decode: all sequences are finished before the first step")
    columns = zip(*(flatten(one) for one in taken), strict=True)
    result = pack_as(taken[0], [F.stack(column) for column in columns])
    if type(decoder).finalize is not Decoder.finalize:
        result, states = decoder.finalize(result, states, lengths)
    if not output_time_major:
        result = map_structure(lambda x: x.transpose([1, 0, *range(2, x.ndim)]), result)
    return (result, states, lengths) if return_length else (result, states)


def _keep_finished(new: Any, old: Any, finished: Any) -> Any:
    return F.where(finished.reshape([-1, *[1] * (new.ndim - 1)]), old, new)
