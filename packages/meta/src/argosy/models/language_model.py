"""A model of a folder with its tokenizer and settings: logits, hidden states, embeddings and generated text."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import argosy as paddle
from argosy.models.adapters import read_adapter
from argosy.models.classifiers import GPTClassifier, GPTTokenClassifier, SequenceClassifier, TokenClassifier
from argosy.models.configuration import ConfigurationError
from argosy.models.decoder import HeadlessDecoder
from argosy.models.encoder import Encoder, EncoderClassifier, EncoderTokenClassifier, MaskedLM
from argosy.models.generation import Ids, Messages, Request, beams_of, is_batch, is_text, lists_of, request_of
from argosy.models.gguf import GgufFile
from argosy.models.gguf_tokenizer import read_tokenizer
from argosy.models.gpt import GPT
from argosy.models.importer import program_of, programs_of_predictions
from argosy.models.loading import config_of, load_model, model_of_file, save
from argosy.models.pooling import Pooling
from argosy.models.rotary_embedding import length_of_rotations
from argosy.nn.layer import Layer
from argosy_infer import Adapter, add_adapters
from argosy_infer.llm import (
    BeamOptions,
    Continuation,
    GenerationSettings,
    Generator,
    SamplingOptions,
    SpeculativeGenerator,
    TextStream,
    Tokenizer,
)
from argosy_tensorcore.wait_notice import announce_wait

__all__ = ["LanguageModel", "load"]

_WITHOUT_TEXT = (
    Encoder, EncoderClassifier, EncoderTokenClassifier, GPTClassifier, GPTTokenClassifier, HeadlessDecoder, MaskedLM,
    SequenceClassifier, TokenClassifier,
)  # fmt: skip
_BLOCK = 16  # tokens of a block of the cache
_BATCH_TOKENS = 1 << 16
"""Tokens that the cache has for a batch, at most, unless one text alone has more positions; further texts wait."""


def load(
    folder: str | os.PathLike[str],
    dtype: str | None = None,
    integers: bool = False,
    adapters: Mapping[str, str | os.PathLike[str]] | None = None,
    cache_dtype: str | None = None,
) -> LanguageModel:
    """The language model of a folder that transformers (or sentence-transformers) wrote, or of a GGUF file.

    The weights are mapped from the files (see :func:`argosy.models.load_model`); ``dtype`` converts them, and
    with ``integers`` the blocks of a GGUF file are multiplied with as they are.
    ``adapters``: folders of PEFT by the names that ``generate(..., adapter=name)`` calls them. ``cache_dtype`` "int8":
    what is cached of generated texts are bytes with scales. Raises ConfigurationError, CheckpointError, TokenizerError
    and AdapterError naming the file and what was expected there.
    """
    is_file = os.fspath(folder).endswith(".gguf")
    if is_file:
        with announce_wait(f"loading {folder}"):
            file = GgufFile(folder, integers)
            model = model_of_file(file, dtype)
    else:
        model = load_model(folder, dtype, integers)
    read = {name: read_adapter(model, each) for name, each in (adapters or {}).items()}
    if is_file:
        tokenizer = read_tokenizer(file)
        end = None if tokenizer is None else tokenizer.id_of("eos_token")
        return LanguageModel(
            model, tokenizer, GenerationSettings(stop=() if end is None else (end,)), None, read, cache_dtype
        )
    has_tokenizer = os.path.isfile(os.path.join(os.fspath(folder), "tokenizer.json"))
    tokenizer = Tokenizer.read(folder) if has_tokenizer else None
    return LanguageModel(model, tokenizer, GenerationSettings.read(folder), Pooling.read(folder), read, cache_dtype)


class LanguageModel:
    """A ``model`` with its ``tokenizer`` (None where the folder has none), ``generation`` settings, ``pooling``, and
    ``adapters`` of generated texts by name; ``cache_dtype`` of what is cached for these (None: as it is, or "int8")."""

    def __init__(
        self,
        model: Layer,
        tokenizer: Tokenizer | None = None,
        generation: GenerationSettings | None = None,
        pooling: Pooling | None = None,
        adapters: Mapping[str, Adapter] | None = None,
        cache_dtype: str | None = None,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.generation = generation or GenerationSettings()
        self.pooling = pooling or Pooling()
        self.adapters = dict(adapters or {})
        self.cache_dtype = cache_dtype
        self._generators: dict[tuple[int | None, bool], Generator] = {}

    def __repr__(self) -> str:
        model, tokenizer = self.model, self.tokenizer
        name = type(model).__name__ if isinstance(model, GPT) else config_of(model).text("model_type")
        count = sum(int(np.prod(each.shape)) for each in model.state_dict().values())
        texts = "no tokenizer" if tokenizer is None else f"a tokenizer of {len(tokenizer)} tokens"
        return f"<LanguageModel {name}: {count / 1e6:.1f} million weights, {self._positions} positions, {texts}>"

    def save(self, folder: str | os.PathLike[str], format: str | None = None) -> None:
        """Write model, tokenizer and settings of generation as a folder that transformers reads, and pooling, where the
        model has no head, as sentence-transformers does; or the first two as a GGUF file: see
        :func:`argosy.models.save`."""
        is_encoder = isinstance(self.model, (Encoder, HeadlessDecoder)) or self.pooling != Pooling()
        pooling = self.pooling if is_encoder else None
        save(self.model, folder, format, self.tokenizer, self.generation, pooling)

    def logits(self, ids: Any) -> Any:
        """What the model's head gives for ids [B, T], or [T] of one text. Raises ValueError for ids that are outside of
        the vocabulary."""
        return self.model(self._batch(ids))

    def hidden(self, ids: Any, mask: Any = None) -> Any:
        """The last hidden states [B, T, D]; ``mask`` [B, T] is False where a token is none. Raises ValueError where it
        has another shape, and as :meth:`logits`."""
        ids_BT = self._batch(ids)
        real = None if mask is None else np.atleast_2d(np.asarray(lists_of(mask)).astype(bool))
        if real is not None and real.shape != tuple(ids_BT.shape):
            raise ValueError(
                f"a mask says of each of the ids {list(ids_BT.shape)} whether it is a token, got {list(real.shape)}"
            )
        if isinstance(self.model, GPT):
            body = self.model.hidden
        else:
            body = self.model if isinstance(self.model, Encoder) else self.model.model
        return body(ids_BT, None if real is None else paddle.to_tensor(real))

    def embed(self, texts: str | Sequence[str], batch_size: int = 32) -> Any:
        """One vector for each text [B, D], by the folder's pooling (the mean of the tokens where it says nothing).
        ``batch_size`` texts of about one length are computed at a time. Raises ValueError for no text."""
        given = [texts] if isinstance(texts, str) else list(texts)
        if not given or batch_size < 1:
            raise ValueError(f"embed() takes texts, one or more at a time; got {len(given)} and {batch_size}")
        order = sorted(range(len(given)), key=lambda i: len(given[i]))
        parts = [order[first : first + batch_size] for first in range(0, len(given), batch_size)]
        made = paddle.concat([self._embed_batch([given[i] for i in part]) for part in parts])
        return paddle.index_select(made, paddle.to_tensor(np.argsort(order)))

    def _embed_batch(self, texts: Sequence[str]) -> Any:
        length = min(self._positions, self.pooling.length or self._positions)
        ids, real = self._tokenizer.encode_batch(texts, length)
        with paddle.no_grad():
            return self.pooling(self.hidden(ids, real), paddle.to_tensor(real))

    def generate(
        self,
        prompt: str | Ids | Messages | Sequence[str | Ids | Messages],
        max_new_tokens: int | None = None,
        options: SamplingOptions | None = None,
        stop: str | int | Sequence[str | int] = (),
        adapter: str | Sequence[str | None] | None = None,
        num_return_sequences: int = 1,
        speculative: bool = False,
        **changes: Any,
    ) -> Any:
        """What follows ``prompt``: text after a text, the answer to the messages of a chat (``[{"role": "user",
        "content": "..."}]``, by the folder's template), ids after ids; of several prompts, of any lengths, a list of
        these. See :meth:`stream`.

        Several prompts share steps, each gives what it gives alone, with an ``adapter`` of all or of each, and draws of
        the i-th have the seed and i. Where ``num_return_sequences`` is more than one, each prompt has a list of so many
        answers, as if it were given so often, but computed once. With ``num_beams`` more than 1 (and
        ``length_penalty``, ``early_stopping``: see :class:`argosy_infer.llm.BeamOptions`), or where the folder's
        settings have that, they are the best of a beam search, one prompt after the other. Raises ValueError for fewer
        than one answer, more than beams, and for several prompts and ``speculative``, whose guesses are for one.
        """
        given = lists_of(prompt)
        beams = beams_of(self.generation, options, changes)
        if beams.count > 1:
            if speculative:
                raise ValueError("several beams share steps, which leave no room for guesses: speculative=False")
            wanted = {"max_new_tokens": max_new_tokens, **changes}
            return self._search(given, beams, num_return_sequences, adapter, options, stop, wanted)
        if num_return_sequences != 1:
            return self._generate_several(
                given, num_return_sequences, adapter,
                max_new_tokens=max_new_tokens, options=options, stop=stop, speculative=speculative, num_beams=1,
                **changes,
            )  # fmt: skip
        if is_batch(given) and speculative:
            raise ValueError(
                "several prompts share steps, which leave no room for guesses: give one, or speculative=False"
            )
        if is_batch(given):
            asked = [
                self._request(each, options, stop, {"max_new_tokens": max_new_tokens, **changes}) for each in given
            ]
            return self._generate_batch(given, asked, [self._number_of(name) for name in _adapters_of(given, adapter)])
        (name,) = _adapters_of(given, adapter)
        asked_one = self._request(given, options, stop, {"max_new_tokens": max_new_tokens, **changes})
        made = list(self._stream(given, asked_one, name, speculative))
        return "".join(made) if is_text(given) else made

    def stream(
        self,
        prompt: str | Ids | Messages,
        max_new_tokens: int | None = None,
        options: SamplingOptions | None = None,
        stop: str | int | Sequence[str | int] = (),
        adapter: str | None = None,
        speculative: bool = False,
        **changes: Any,
    ) -> Iterator[Any]:
        """New pieces of text after a text or messages, or ids after ids, one by one, until a token that ends texts, or
        before one of ``stop``: texts, or tokens.

        Tokens are decoded over a cache by the incremental form of the model's own program. Where rotations depend on
        the text's length (scalings ``dynamic`` and ``longrope``), they are those of all tokens that are asked for from
        the first one on: what is cached is not turned again when a text grows beyond the model's. Sampling is that of
        the folder's settings unless ``options`` say otherwise, and ``changes`` are fields of these (``temperature``,
        ``seed``, ...) and ``min_new_tokens``; ``adapter``: the name of the one that changes the model for this text.
        With ``speculative`` the modules by which a model predicts further tokens guess these, and a step verifies the
        guesses: the same tokens in fewer steps. Where ``max_new_tokens`` is not given, the folder's count ends with the
        model's positions. Raises TypeError for other names, NotImplementedError for settings of the folder that are not
        implemented, and for ``speculative`` beside adapters, ValueError where a model has no such modules,
        IncrementalError for a model that is not causal.
        """
        prompt = lists_of(prompt)
        if is_batch(prompt):
            raise TypeError("stream takes one prompt; generate takes several")
        if beams_of(self.generation, options, changes).count > 1:
            raise NotImplementedError("a beam search gives whole texts: call generate, or give num_beams=1")
        asked = self._request(prompt, options, stop, {"max_new_tokens": max_new_tokens, **changes})
        return self._stream(prompt, asked, adapter, speculative)

    def _stream(self, prompt: Any, asked: Request, adapter: str | None, speculative: bool) -> Iterator[Any]:
        generator = self._generator([asked], speculative)
        number = self._number_of(adapter)
        tokens = generator.stream(asked.ids, asked.most, asked.sampling, asked.ends, asked.least, number)
        return self._texts(tokens, asked.texts) if is_text(prompt) else tokens

    def _search(
        self, given: Any, beams: BeamOptions, count: int, adapter: Any, options: Any, stop: Any, changes: dict[str, Any]
    ) -> Any:
        """The best of a beam search after each prompt, or ``count`` of them."""
        if not 1 <= count <= beams.count:
            raise ValueError(f"num_return_sequences should be 1 to num_beams, {beams.count}, got {count}")
        prompts, names = given if is_batch(given) else [given], _adapters_of(given, adapter)
        asked = [self._request(each, options, stop, changes) for each in prompts]
        if any(each.texts for each in asked):
            raise NotImplementedError("a beam search ends at tokens: stop should have no texts")
        if not asked:
            return []
        longest = max(asked, key=lambda each: len(each.ids) + each.most)
        generator, answers = self._generator([longest] * beams.count), []
        for prompt, each, name in zip(prompts, asked, names, strict=True):
            found = generator.search(
                each.ids, each.most, beams, each.sampling, each.ends, each.least, self._number_of(name)
            )[:count]
            made = [beam.tokens for beam in found]
            answers.append([self._tokenizer.decode(row) for row in made] if is_text(prompt) else made)
        rows = [row if count > 1 else row[0] for row in answers]
        return rows if is_batch(given) else rows[0]

    def _generate_several(self, given: Any, count: int, adapter: Any, **asked: Any) -> list[Any]:
        """``count`` answers to each prompt."""
        if count < 1:
            raise ValueError(f"num_return_sequences should be 1 or more, got {count}")
        prompts, names = given if is_batch(given) else [given], _adapters_of(given, adapter)
        repeated = [each for each in prompts for _ in range(count)]
        made = self.generate(repeated, adapter=[name for name in names for _ in range(count)], **asked)
        rows = [made[start : start + count] for start in range(0, len(made), count)]
        return rows if is_batch(given) else rows[0]

    def _generate_batch(self, prompts: Sequence[Any], asked: Sequence[Request], adapters: Sequence[int]) -> list[Any]:
        texts_of = [self._tokenizer.stream(each.texts) if is_text(prompts[i]) else None for i, each in enumerate(asked)]
        answers = [None if stream is None else _Answer(stream) for stream in texts_of]
        texts = []
        for i, (each, number, answer) in enumerate(zip(asked, adapters, answers, strict=True)):
            sampling = replace(each.sampling, seed=each.sampling.seed + i)
            texts.append(Continuation(each.ids, each.most, sampling, each.ends, each.least, number, answer))
        self._generator(asked).extend(texts)
        return [text.made if answer is None else answer.text() for text, answer in zip(texts, answers, strict=True)]

    def _number_of(self, adapter: str | None) -> int:
        """Which of the program's adapters has a name; 0 for none."""
        if adapter is None:
            return 0
        if adapter not in self.adapters:
            raise ValueError(f"there is no adapter {adapter!r:.80}: load(..., adapters=) gave {list(self.adapters)}")
        return list(self.adapters).index(adapter) + 1

    def _request(self, prompt: Any, options: SamplingOptions | None, stop: Any, changes: dict[str, Any]) -> Request:
        tokenizer = self._tokenizer if is_text(prompt) else None
        return request_of(prompt, tokenizer, self.generation, options, stop, self._positions, changes)

    def _texts(self, tokens: Iterator[int], stop: Sequence[str]) -> Iterator[str]:
        text = self._tokenizer.stream(stop)
        for token in tokens:
            if piece := text.add(token):
                yield piece
            if text.ended:
                return
        if rest := text.finish():
            yield rest

    def _generator(self, asked: Sequence[Request], speculative: bool = False) -> Generator:
        """The generator of texts whose rotations are those of the longest, where they depend on it."""
        if isinstance(self.model, _WITHOUT_TEXT):
            raise TypeError(f"{type(self.model).__name__} generates no text: expected a model with a causal head")
        lengths = [len(each.ids) + each.most for each in asked]
        blocks = getattr(self.model.config, "blocks", ())
        length = length_of_rotations(blocks[0].attention.rotary, max(lengths)) if blocks else None
        capacity = max(self._positions, min(sum(lengths) + _BLOCK * len(lengths), _BATCH_TOKENS))
        found = self._generators.get((length, speculative))
        if found is None or found.capacity < capacity:
            self._generators = {}  # one at a time: each has a cache
            options: dict[str, Any] = {"capacity": capacity, "cache_dtype": self.cache_dtype, "text_length": length}
            found = self._build_generator(speculative, {"block_size": _BLOCK, **options})
            self._generators[length, speculative] = found
        return found

    def _build_generator(self, speculative: bool, options: Mapping[str, Any]) -> Generator:
        if speculative and self.adapters:
            raise NotImplementedError("generate(speculative=True) beside adapters: load the model without them")
        if speculative:
            return SpeculativeGenerator(*programs_of_predictions(self.model), **options)
        program = program_of(self.model)
        if self.adapters:
            program = add_adapters(program, list(self.adapters.values()))
        return Generator(program, **options)

    @property
    def _tokenizer(self) -> Tokenizer:
        if self.tokenizer is None:
            raise ConfigurationError("the folder has no tokenizer.json: pass ids instead of texts")
        return self.tokenizer

    @property
    def _positions(self) -> int:
        """The longest sequence of the model."""
        return int(self.model.config.positions)

    def _batch(self, ids: Any) -> Any:
        """Ids as a tensor [B, T]. Raises ValueError for those that the model does not have."""
        if isinstance(ids, str):
            raise ValueError(f"ids should be whole numbers, got a text; tokenizer.encode({ids!r:.40}) gives them")
        rows = lists_of(ids)
        if is_batch(rows) and len({len(row) for row in rows}) > 1:
            raise ValueError(
                f"ids of a batch should have one length, got {[len(row) for row in rows][:8]}; the tokenizer's "
                "encode_batch pads texts"
            )
        given = ids.numpy() if isinstance(ids, paddle.Tensor) else np.asarray(ids)
        if given.dtype.kind not in "iu" or given.ndim not in (1, 2):
            raise ValueError(f"ids should be whole numbers [B, T] or [T], got {given.dtype} {list(given.shape)}")
        vocabulary = int(self.model.config.vocabulary)
        if given.size and not 0 <= int(given.min()) <= int(given.max()) < vocabulary:
            raise ValueError(f"ids go from {given.min()} to {given.max()}; the vocabulary has {vocabulary} tokens")
        return paddle.to_tensor(np.atleast_2d(given).astype(np.int64))


def _adapters_of(given: Any, adapter: Any) -> list[str | None]:
    """The adapter of each prompt: one for all, or one of each. Raises TypeError for several of one prompt, ValueError
    for another number than that of the prompts."""
    if adapter is None or isinstance(adapter, str):
        return [adapter] * (len(given) if is_batch(given) else 1)
    if not is_batch(given):
        raise TypeError(f"one prompt has one adapter, got {adapter!r:.80}")
    if len(adapter) != len(given):
        raise ValueError(f"{len(given)} prompts have one adapter, or one each, got {len(adapter)}")
    return list(adapter)


class _Answer:
    """A text of a batch: called with each token; True where the text has ended."""

    def __init__(self, stream: TextStream) -> None:
        self._stream, self._pieces = stream, list[str]()

    def __call__(self, token: int) -> bool:
        self._pieces.append(self._stream.add(token))
        return self._stream.ended

    def text(self) -> str:
        """The whole text, when no token follows."""
        return "".join([*self._pieces, self._stream.finish()])
