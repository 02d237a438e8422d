"""Generation with language models: the paged cache, sampling, the loop around an incremental program, and text."""

from argosy_infer.llm.beams import Beam, BeamOptions
from argosy_infer.llm.chat import ChatError, ChatTemplate
from argosy_infer.llm.continuation import Continuation
from argosy_infer.llm.generator import Generator, SamplingOptions
from argosy_infer.llm.settings import GenerationSettings, SettingsError
from argosy_infer.llm.speculation import SpeculativeGenerator
from argosy_infer.llm.text_stream import TextStream
from argosy_infer.llm.tokenizer import Tokenizer, TokenizerError

__all__ = [
    "Beam", "BeamOptions", "ChatError", "ChatTemplate", "Continuation", "GenerationSettings", "Generator",
    "SamplingOptions", "SettingsError", "SpeculativeGenerator", "TextStream", "Tokenizer", "TokenizerError",
]  # fmt: skip
