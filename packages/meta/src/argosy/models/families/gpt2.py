"""GPT-2 (Radford et al., 2019): :class:`argosy.models.GPT` with the head tied to the tokens."""

from __future__ import annotations

from argosy.models.classifiers import GPTClassifier, GPTTokenClassifier
from argosy.models.configuration import ConfigFile
from argosy.models.families.common import activation, classes_of, classifier_dropout
from argosy.models.gpt import GPT, GPTConfig

PREFIX = "transformer."
TRANSPOSED = False  # its files hold matrices [in, out], but for the head
TRANSPOSED_TOO = ("head.weight", "score.weight", "classifier.weight")
NAMES = (
    (r"^tokens\.", "wte."),
    (r"^positions\.", "wpe."),
    (r"^blocks\.", "h."),
    (r"^norm\.", "ln_f."),
    (r"^head\.", "lm_head."),
    (r"\.norm1\.", ".ln_1."),
    (r"\.norm2\.", ".ln_2."),
    (r"\.attention\.inward\.", ".attn.c_attn."),
    (r"\.attention\.outward\.", ".attn.c_proj."),
    (r"\.wide\.", ".mlp.c_fc."),
    (r"\.narrow\.", ".mlp.c_proj."),
)
IGNORED = (r"\.attn\.(masked_)?bias$",)


def build(config: ConfigFile) -> GPT:
    """The model of a ``gpt2`` configuration, with the head that its ``architectures`` name."""
    kind = config.architecture("LMHeadModel")
    scores = next((end for end in ("ForSequenceClassification", "ForTokenClassification") if kind.endswith(end)), None)
    width, heads = config.integer("n_embd"), config.integer("n_head")
    if width % heads:
        raise config.error("n_head", f"a divisor of n_embd ({width})", heads)
    sizes = GPTConfig(
        vocabulary=config.integer("vocab_size"),
        positions=config.integer("n_positions"),
        width=width,
        layers=config.integer("n_layer"),
        heads=heads,
        dropout=config.number("resid_pdrop", default=0.0),
        tied=scores is not None or config.flag("tie_word_embeddings", default=True),
        epsilon=config.number("layer_norm_epsilon", default=1e-5),
        hidden=config.integer("n_inner", default=4 * width),
        activation=activation(config, "activation_function", default="gelu_new"),
        scale=None if config.flag("scale_attn_weights", default=True) else 1.0,
        scaled_by_layer=config.flag("scale_attn_by_inverse_layer_idx", default=False),
    )
    if scores is None:
        return GPT(sizes)
    if scores == "ForSequenceClassification":
        return GPTClassifier(sizes, classes_of(config))
    return GPTTokenClassifier(sizes, classes_of(config), classifier_dropout(config))
