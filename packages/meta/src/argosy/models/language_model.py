"""A model of a folder with its tokenizer and settings: logits, hidden states, embeddings and generated text."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import argosy as paddle
from argosy.models.configuration import ConfigurationError
from argosy.models.decoder import HeadlessDecoder, SequenceClassifier
from argosy.models.encoder import Encoder, EncoderClassifier, MaskedLM
from argosy.models.gguf_tokenizer import read_tokenizer
from argosy.models.gpt import GPT
from argosy.models.importer import program_of
from argosy.models.loading import load_model
from argosy.models.pooling import Pooling
from argosy.models.rotary_embedding import length_of_rotations
from argosy.nn.layer import Layer
from argosy_infer.llm import GenerationSettings, Generator, SamplingOptions, Tokenizer

__all__ = ["LanguageModel", "load"]

Ids = Sequence[int]


def load(folder: str | os.PathLike[str], dtype: str | None = None, integers: bool = False) -> LanguageModel:
    """The language model of a folder that transformers (or sentence-transformers) wrote, or of a GGUF file.

    The weights are mapped from the files (see :func:`argosy.models.load_model`); ``dtype`` converts them, and
    with ``integers`` the blocks Q8_0, Q4_0, Q4_K and Q6_K of a GGUF file are multiplied with as they are. Raises
    ConfigurationError, CheckpointError and TokenizerError naming the file and what was expected there.
    """
    model = load_model(folder, dtype, integers)
    if os.fspath(folder).endswith(".gguf"):
        tokenizer = read_tokenizer(folder)
        end = None if tokenizer is None else tokenizer.id_of("eos_token")
        return LanguageModel(model, tokenizer, GenerationSettings(stop=() if end is None else (end,)))
    has_tokenizer = os.path.isfile(os.path.join(os.fspath(folder), "tokenizer.json"))
    tokenizer = Tokenizer.read(folder) if has_tokenizer else None
    return LanguageModel(model, tokenizer, GenerationSettings.read(folder), Pooling.read(folder))


class LanguageModel:
    """A ``model`` with its ``tokenizer`` (None where the folder has none), ``generation`` settings and ``pooling``."""

    def __init__(
        self,
        model: Layer,
        tokenizer: Tokenizer | None = None,
        generation: GenerationSettings | None = None,
        pooling: Pooling | None = None,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.generation = generation or GenerationSettings()
        self.pooling = pooling or Pooling()
        self._generators: dict[int | None, Generator] = {}

    def logits(self, ids: Any) -> Any:
        """What the model's head gives for ids [B, T], or [T] of one text. Raises ValueError for ids that are outside of
        the vocabulary."""
        return self.model(self._batch(ids))

    def hidden(self, ids: Any, mask: Any = None) -> Any:
        """The last hidden states [B, T, D]; ``mask`` [B, T] is False where a token is none."""
        ids_BT = self._batch(ids)
        if isinstance(self.model, GPT):
            body = self.model.hidden
        else:
            body = self.model if isinstance(self.model, Encoder) else self.model.model
        return body(ids_BT, None if mask is None else paddle.to_tensor(np.asarray(mask, bool)))

    def embed(self, texts: str | Sequence[str]) -> Any:
        """One vector for each text [B, D], by the folder's pooling (the mean of the tokens where it says nothing)."""
        ids, real = self._tokenizer.encode_batch([texts] if isinstance(texts, str) else texts, self._positions)
        with paddle.no_grad():
            return self.pooling(self.hidden(ids, real), paddle.to_tensor(real))

    def generate(
        self,
        prompt: str | Ids,
        max_new_tokens: int | None = None,
        options: SamplingOptions | None = None,
    ) -> Any:
        """What follows ``prompt``: text after a text, ids after ids. See :meth:`stream`."""
        made = list(self.stream(prompt, max_new_tokens, options))
        return "".join(made) if isinstance(prompt, str) else made

    def stream(
        self,
        prompt: str | Ids,
        max_new_tokens: int | None = None,
        options: SamplingOptions | None = None,
    ) -> Iterator[Any]:
        """New pieces of text after a text, or ids after ids, one by one, until a token that ends texts.

        Tokens are decoded over a cache by the incremental form of the model's own program. Where rotations depend on
        the text's length (scalings ``dynamic`` and ``longrope``), they are those of all tokens that are asked for from
        the first one on: what is cached is not turned again when a text grows beyond the model's. Sampling is that of
        the folder's settings unless ``options`` say otherwise. Raises NotImplementedError for settings of the folder
        that are not implemented, IncrementalError for a model that is not causal.
        """
        if options is None and self.generation.missing:
            missing = ", ".join(self.generation.missing)
            raise NotImplementedError(f"generation_config.json asks for {missing}; pass options=SamplingOptions(...)")
        ids = self._tokenizer.encode(prompt) if isinstance(prompt, str) else list(prompt)
        count = self.generation.max_new_tokens if max_new_tokens is None else max_new_tokens
        settings = self.generation
        least = 0 if options else settings.min_new_tokens
        generator = self._generator(self._length_of_rotations(len(ids) + count))
        tokens = generator.stream(ids, count, options or settings.sampling, settings.stop, least)
        return self._texts(tokens) if isinstance(prompt, str) else tokens

    def _texts(self, tokens: Iterator[int]) -> Iterator[str]:
        text = self._tokenizer.stream()
        for token in tokens:
            if piece := text.add(token):
                yield piece
        if rest := text.finish():
            yield rest

    def _length_of_rotations(self, length: int) -> int | None:
        blocks = getattr(self.model.config, "blocks", ())
        return length_of_rotations(blocks[0].attention.rotary, length) if blocks else None

    def _generator(self, length: int | None) -> Generator:
        """The generator of texts whose rotations are those of one of ``length``, where they depend on it."""
        if isinstance(self.model, (Encoder, EncoderClassifier, HeadlessDecoder, MaskedLM, SequenceClassifier)):
            raise TypeError(f"{type(self.model).__name__} generates no text: expected a model with a causal head")
        if length not in self._generators:
            made = Generator(program_of(self.model), capacity=self._positions, text_length=length)
            self._generators = {length: made}  # one at a time: each has a cache
        return self._generators[length]

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
        given = ids.numpy() if isinstance(ids, paddle.Tensor) else np.asarray(ids)
        if given.dtype.kind not in "iu" or given.ndim not in (1, 2):
            raise ValueError(f"ids should be whole numbers [B, T] or [T], got {given.dtype} {list(given.shape)}")
        vocabulary = int(self.model.config.vocabulary)
        if given.size and not 0 <= int(given.min()) <= int(given.max()) < vocabulary:
            raise ValueError(f"ids go from {given.min()} to {given.max()}; the vocabulary has {vocabulary} tokens")
        return paddle.to_tensor(np.atleast_2d(given).astype(np.int64))
