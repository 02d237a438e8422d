"""BERT (Devlin et al., 2019) and ERNIE (Sun et al., 2020)."""

from __future__ import annotations

from typing import Any

from argosy.models.configuration import ConfigFile
from argosy.models.encoder import Encoder, EncoderClassifier, EncoderConfig, EncoderTokenClassifier, MaskedLM
from argosy.models.families.common import activation, classes_of, classifier_dropout

PREFIXES = ("bert.", "ernie.")
NAMES = (
    (r"^model\.", ""),
    (r"^layers\.", "encoder.layer."),
    (r"\.(query|key|value)\.", r".attention.self.\1."),
    (r"\.attention_output\.", ".attention.output.dense."),
    (r"\.attention_norm\.", ".attention.output.LayerNorm."),
    (r"\.intermediate\.", ".intermediate.dense."),
    (r"\.output\.(weight|bias)", r".output.dense.\1"),
    (r"\.output_norm\.", ".output.LayerNorm."),
    (r"^pooler\.", "pooler.dense."),
    (r"^transform\.", "cls.predictions.transform.dense."),
    (r"^transform_norm\.", "cls.predictions.transform.LayerNorm."),
    (r"^bias$", "cls.predictions.bias"),
    (r"^decoder\.", "cls.predictions.decoder."),
)
IGNORED = (r"position_ids$", r"^cls\.", r"\.pooler\.", r"^pooler\.")


def build(config: ConfigFile) -> Any:
    """The model of a ``bert`` or ``ernie`` configuration, with the head that its ``architectures`` name."""
    heads, width = config.integer("num_attention_heads"), config.integer("hidden_size")
    if width % heads:
        raise config.error("num_attention_heads", f"a divisor of hidden_size ({width})", heads)
    sizes = EncoderConfig(
        vocabulary=config.integer("vocab_size"),
        width=width,
        layers=config.integer("num_hidden_layers"),
        heads=heads,
        hidden=config.integer("intermediate_size"),
        positions=config.integer("max_position_embeddings"),
        segments=config.integer("type_vocab_size", default=2),
        tasks=config.integer("task_type_vocab_size", default=3) if config.optional("use_task_id") else 0,
        activation=activation(config, default="gelu"),
        epsilon=config.number("layer_norm_eps", default=1e-12),
        dropout=config.number("hidden_dropout_prob", default=0.1),
        attention_dropout=config.number("attention_probs_dropout_prob", default=0.1),
        tied=config.flag("tie_word_embeddings", default=True),
    )
    kind = config.architecture("Model")
    if kind.endswith(("ForMaskedLM", "ForPreTraining")):
        return MaskedLM(sizes)
    if kind.endswith("ForSequenceClassification"):
        return EncoderClassifier(sizes, classes_of(config))
    if kind.endswith("ForTokenClassification"):
        return EncoderTokenClassifier(sizes, classes_of(config), classifier_dropout(config))
    if not kind.endswith("Model"):
        known = "Model, ForMaskedLM, ForPreTraining, ForSequenceClassification and ForTokenClassification"
        raise config.error("architectures", f"one that ends in {known}", kind)
    return Encoder(sizes, pooled=True)
