"""Generation with language models: the paged cache, sampling, and the loop around an incremental program."""

from argosy_infer.llm.generator import Generator, SamplingOptions

__all__ = ["Generator", "SamplingOptions"]
