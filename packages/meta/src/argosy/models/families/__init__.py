"""Families of language models: what each one's ``config.json`` means, and the names of its files.

``FAMILIES`` maps a ``model_type`` to the module that has ``configure(ConfigFile) -> DecoderConfig`` and, where the
file's names are not the model's own, ``NAMES`` and ``PARTS`` (see :mod:`argosy.models.weights`).
"""

from __future__ import annotations

FAMILIES: dict[str, str] = {
    "bert": "bert",
    "deepseek_v2": "deepseek",
    "deepseek_v3": "deepseek",
    "ernie": "bert",
    "ernie4_5": "ernie4_5",
    "ernie4_5_moe": "ernie4_5",
    "gemma2": "gemma",
    "gemma3_text": "gemma",
    "glm4_moe": "glm4_moe",
    "gpt2": "gpt2",
    "gpt_oss": "gpt_oss",
    "llama": "llama",
    "mistral": "llama",
    "mixtral": "mixtral",
    "olmo2": "olmo2",
    "phi3": "phi3",
    "qwen2": "qwen",
    "qwen2_moe": "qwen",
    "qwen3": "qwen",
    "qwen3_moe": "qwen",
}
"""Modules of this package, by the ``model_type`` of a ``config.json``."""
