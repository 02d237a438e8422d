"""GPT-2 (Radford et al., 2019): :class:`argosy.models.GPT` with the head tied to the tokens."""

from __future__ import annotations

from argosy.models.configuration import ConfigFile
from argosy.models.gpt import GPT, GPTConfig

PREFIX = "transformer."
TRANSPOSED = False  # its files hold matrices [in, out], but for the head
TRANSPOSED_TOO = ("head.weight",)
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
    """The model of a ``gpt2`` configuration. Raises ConfigurationError for an activation that GPT-2 has not."""
    name = config.text("activation_function", default="gelu_new")
    if name not in ("gelu_new", "gelu_pytorch_tanh"):
        raise config.error("activation_function", "gelu_new", name)
    for key, usual in (("scale_attn_weights", True), ("scale_attn_by_inverse_layer_idx", False)):
        if config.flag(key, default=usual) != usual:
            raise NotImplementedError(f"{config.path}: {key!r} {not usual} is not implemented")
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
        tied=config.flag("tie_word_embeddings", default=True),
        epsilon=config.number("layer_norm_epsilon", default=1e-5),
        hidden=config.integer("n_inner", default=4 * width),
    )
    return GPT(sizes)
