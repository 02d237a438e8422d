"""Tokenizers of folders as transformers writes them: ``tokenizer.json`` through the library ``tokenizers`` (the extra
``[text]``), and what a chat becomes before it is tokenized.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from argosy_infer.llm.chat import ChatTemplate
from argosy_infer.llm.text_stream import TextStream

__all__ = ["Tokenizer", "TokenizerError"]

Array = np.ndarray[Any, Any]
_SPECIAL = ("bos_token", "eos_token", "pad_token", "unk_token", "cls_token", "sep_token", "mask_token")


class TokenizerError(ValueError):
    """Files of a tokenizer that cannot be read; the message names the file."""


class Tokenizer:
    """Text to token ids and back.

    ``special``: the texts of special tokens by their names (``eos_token``, ...); ``template``: that of chats, or None.
    """

    def __init__(self, library: Any, special: Mapping[str, str], template: ChatTemplate | None = None) -> None:
        self._library = library
        self.special = dict(special)
        self.template = template

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Tokenizer:
        """The tokenizer of a folder. Raises TokenizerError for files that are missing or damaged, and ImportError
        naming what to install."""
        path = os.path.join(os.fspath(folder), "tokenizer.json")
        if not os.path.isfile(path):
            raise TokenizerError(f"{path} does not exist")
        with open(path, encoding="utf-8", errors="replace") as file:
            library = _library_of(file.read(), path)
        config = _read_config(folder)
        texts = {name: _text_of(config[name]) for name in _SPECIAL if config.get(name) is not None}
        return cls(library, texts, ChatTemplate.read(folder, config, texts))

    @classmethod
    def from_json(
        cls, text: str, special: Mapping[str, str], template: ChatTemplate | None = None, path: str = "tokenizer.json"
    ) -> Tokenizer:
        """The tokenizer of the text of a ``tokenizer.json``. Raises as :meth:`read`, naming ``path``."""
        return cls(_library_of(text, path), special, template)

    def __len__(self) -> int:
        """How many tokens there are."""
        return int(self._library.get_vocab_size())

    def encode(self, text: str, special: bool = True) -> list[int]:
        """The ids of a text; with ``special`` those that the model expects around it, too."""
        ids: list[int] = self._library.encode(text, add_special_tokens=special).ids
        return ids

    def encode_batch(self, texts: Sequence[str], limit: int | None = None) -> tuple[Array, Array]:
        """Ids [B, T] int64 of texts side by side, shorter ones padded behind, and True [B, T] where a token is real;
        ``limit`` cuts longer ones."""
        rows = [row.ids[:limit] for row in self._library.encode_batch(list(texts))]
        length = max(map(len, rows), default=0)
        ids = np.full((len(rows), length), self.id_of("pad_token") or 0, np.int64)
        real = np.zeros(ids.shape, bool)
        for i, row in enumerate(rows):
            ids[i, : len(row)], real[i, : len(row)] = row, True
        return ids, real

    def decode(self, ids: Sequence[int], special: bool = False) -> str:
        """The text of ids, without special tokens unless asked for."""
        text: str = self._library.decode(list(ids), skip_special_tokens=not special)
        return text

    def id_of(self, name: str) -> int | None:
        """The id of a special token (``eos_token``, ...), None where there is none."""
        text = self.special.get(name)
        found: int | None = None if text is None else self._library.token_to_id(text)
        return found

    def chat(self, messages: Sequence[Mapping[str, Any]], answer: bool = True, **values: Any) -> list[int]:
        """The ids of a chat by the folder's template; ``answer``: with the beginning of the assistant's turn. Raises
        TokenizerError where the folder has no template, ChatError where the template refuses."""
        if self.template is None:
            raise TokenizerError("the tokenizer has no chat template (chat_template in tokenizer_config.json)")
        return self.encode(self.template.render(messages, answer, **values), special=False)

    def to_json(self) -> str:
        """The text of a ``tokenizer.json``."""
        text: str = self._library.to_str()
        return text

    def files(self) -> dict[str, bytes]:
        """The contents of the files that :meth:`read` reads, by name."""
        texts = {"tokenizer.json": self.to_json(), "tokenizer_config.json": json.dumps(self.special, indent=2)}
        if self.template is not None:
            texts["chat_template.jinja"] = self.template.source
        return {name: text.encode() for name, text in texts.items()}

    def stream(self, stop: Sequence[str] = ()) -> TextStream:
        """A text that grows token by token, and ends before the first of the texts ``stop``."""
        return TextStream(self.decode, stop)


def _library_of(text: str, path: str) -> Any:
    """The library's object for its JSON form."""
    try:
        from tokenizers import Tokenizer as Library
    except ModuleNotFoundError as error:
        install = "python -m pip install argosy-infer[text]"
        raise ImportError(f"tokenizers need the library of that name: {install}", name=error.name) from error
    try:
        library = Library.from_str(text)
    except BaseException as error:  # the library raises Exception itself, and a panic that is none
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        raise TokenizerError(f"{path} is no tokenizer: {error}") from None
    library.no_padding()
    library.no_truncation()
    return library


def _read_config(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """``tokenizer_config.json``, with nothing in it where there is none."""
    path = os.path.join(os.fspath(folder), "tokenizer_config.json")
    try:
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise TokenizerError(f"{path} is no JSON text: {error}") from None
    if not isinstance(config, dict):
        raise TokenizerError(f"{path}: expected a JSON object, got {type(config).__name__}")
    return config


def _text_of(token: Any) -> str:
    """A special token's text: as it is, or in a table under ``content``."""
    found = token.get("content") if isinstance(token, dict) else token
    if not isinstance(found, str):
        raise TokenizerError(f"tokenizer_config.json: a special token is {token!r:.80}, expected a text")
    return found
