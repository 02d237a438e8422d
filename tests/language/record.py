"""Records what transformers on torch computes with tiny models of every family; run in an environment of its own:

    python tests/language/record.py

(transformers 5, torch, safetensors). A record holds the ``config.json`` that transformers writes, names and shapes of
the tensors in its file, ids and logits; the weights follow from their names. Of language models it also holds prompts
and the ``GREEDY`` tokens that follow each, none of which is nearly a tie.
"""

import json
import sys
import tempfile
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(Path(__file__).parent))
from weights_by_name import weights

GREEDY, TIE = 64, 3e-4  # a tie: the two largest logits differ by less, relative to the largest magnitude
HERE = Path(__file__).parent
IDS = [[3, 17, 5, 40, 8, 8, 21, 33, 2, 11, 30, 9], [1, 2, 3, 4, 5, 6, 7, 38, 9, 10, 11, 12]]
SIZES = {
    "vocab_size": 48, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 80, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
GPT2 = {"vocab_size": 48, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 80}
MOE = {"moe_intermediate_size": 24, "num_experts_per_tok": 2}
ENCODER = {**SIZES, "type_vocab_size": 2}
DEEPSEEK = {
    **SIZES,
    **MOE,
    "num_key_value_heads": 4,
    "n_routed_experts": 8,
    "n_shared_experts": 2,
    "n_group": 4,
    "topk_group": 2,
    "kv_lora_rank": 16,
    "q_lora_rank": 24,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 12,
    "first_k_dense_replace": 1,
    "routed_scaling_factor": 1.7,
}


def rope(kind: str, **numbers: object) -> dict[str, object]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 1000.0, **numbers}}


CASES: dict[str, tuple[str, dict[str, object]]] = {
    "llama": ("Llama", {**SIZES}),
    "llama-biases-tied": (
        "Llama",
        {**SIZES, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "head_dim": 12},
    ),
    "llama-linear": ("Llama", {**SIZES, **rope("linear", factor=4.0)}),
    "llama-dynamic": ("Llama", {**SIZES, "max_position_embeddings": 8, **rope("dynamic", factor=4.0)}),
    "llama-llama3": (
        "Llama",
        {
            **SIZES,
            **rope(
                "llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16
            ),
        },
    ),
    "llama-yarn": ("Llama", {**SIZES, **rope("yarn", factor=4.0, original_max_position_embeddings=16)}),
    "mistral": ("Mistral", {**SIZES, "sliding_window": 5}),
    "mixtral": ("Mixtral", {**SIZES, "num_local_experts": 4, "num_experts_per_tok": 2}),
    "qwen2": ("Qwen2", {**SIZES}),
    "qwen2-windows": ("Qwen2", {**SIZES, "use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1}),
    "qwen3": ("Qwen3", {**SIZES, "head_dim": 16}),
    "qwen2_moe": ("Qwen2Moe", {**SIZES, **MOE, "num_experts": 4, "shared_expert_intermediate_size": 28}),
    "qwen3_moe": (
        "Qwen3Moe",
        {**SIZES, **MOE, "num_experts": 6, "norm_topk_prob": True, "mlp_only_layers": [0], "head_dim": 8},
    ),
    "qwen3_moe-windows": (
        "Qwen3Moe",
        {
            **SIZES,
            **MOE,
            "num_experts": 6,
            "use_sliding_window": True,
            "sliding_window": 4,
            "max_window_layers": 1,
            "decoder_sparse_step": 2,
            "head_dim": 12,
        },
    ),
    "qwen3-hidden": ("Qwen3Model", {**SIZES, "head_dim": 16}),
    "deepseek_v2": ("DeepseekV2", {**DEEPSEEK, "topk_method": "group_limited_greedy"}),
    "deepseek_v2-no-query-latent": ("DeepseekV2", {**DEEPSEEK, "q_lora_rank": None, "topk_method": "greedy"}),
    "deepseek_v3": ("DeepseekV3", {**DEEPSEEK}),
    "deepseek_v3-yarn": (
        "DeepseekV3",
        {**DEEPSEEK, **rope("yarn", factor=4.0, original_max_position_embeddings=16, mscale=1.0, mscale_all_dim=0.8)},
    ),
    "gemma2": (
        "Gemma2",
        {
            **SIZES,
            "head_dim": 8,
            "sliding_window": 4,
            "query_pre_attn_scalar": 12,
            "attn_logit_softcapping": 5.0,
            "final_logit_softcapping": 3.0,
        },
    ),
    "gemma3_text": (
        "Gemma3",
        {
            **SIZES,
            "head_dim": 8,
            "sliding_window": 4,
            "query_pre_attn_scalar": 12,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        },
    ),
    "ernie4_5": ("Ernie4_5", {**SIZES}),
    "ernie4_5_moe": (
        "Ernie4_5_Moe",
        {
            **SIZES,
            "moe_num_experts": 4,
            "moe_k": 2,
            "moe_intermediate_size": 24,
            "moe_num_shared_experts": 2,
            "moe_layer_start_index": 1,
        },
    ),
    "ernie4_5_moe-biases": (
        "Ernie4_5_Moe",
        {
            **SIZES,
            "use_bias": True,
            "moe_num_experts": 4,
            "moe_k": 1,
            "moe_intermediate_size": 24,
            "moe_num_shared_experts": 0,
            "moe_layer_start_index": 0,
            "moe_layer_interval": 2,
            "moe_layer_end_index": 1,
        },
    ),
    "phi3": ("Phi3", {**SIZES, "sliding_window": 6}),
    "phi3-longrope": (
        "Phi3",
        {
            **SIZES,
            "original_max_position_embeddings": 8,
            **rope(
                "longrope",
                original_max_position_embeddings=8,
                short_factor=[1.0, 1.1, 1.2, 1.3],
                long_factor=[1.5, 2.0, 2.5, 3.0],
            ),
        },
    ),
    "olmo2": ("Olmo2", {**SIZES}),
    "glm4_moe": (
        "Glm4Moe",
        {
            **SIZES,
            **MOE,
            "n_routed_experts": 8,
            "n_shared_experts": 1,
            "n_group": 2,
            "topk_group": 1,
            "use_qk_norm": True,
            "attention_bias": True,
            "head_dim": 16,
            "num_mtp_layers": 0,
            **rope("default", partial_rotary_factor=0.5),
        },
    ),
    "gpt_oss": (
        "GptOss",
        {**SIZES, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 4, "head_dim": 8},
    ),
    "gpt2": ("GPT2", GPT2),
    "bert": ("Bert", ENCODER),
    "bert-masked": ("BertForMaskedLM", ENCODER),
    "bert-classes": ("BertForSequenceClassification", {**ENCODER, "num_labels": 3}),
    "ernie": ("Ernie", {**ENCODER, "use_task_id": True}),
    "bert-tokens": ("BertForTokenClassification", {**ENCODER, "num_labels": 3}),
    "llama-relu2-tokens": ("LlamaForTokenClassification", {**SIZES, "hidden_act": "relu2", "num_labels": 3}),
    "gpt2-scales-classes": (
        "GPT2ForSequenceClassification",
        {
            **GPT2,
            "activation_function": "relu",
            "scale_attn_weights": False,
            "scale_attn_by_inverse_layer_idx": True,
            "num_labels": 3,
            "pad_token_id": 0,
        },
    ),
    "gpt2-gelu-tokens": ("GPT2ForTokenClassification", {**GPT2, "activation_function": "gelu", "num_labels": 3}),
    "gemma3_text-both-ways": (
        "Gemma3TextModel",
        {
            **SIZES,
            "head_dim": 8,
            "sliding_window": 6,
            "use_bidirectional_attention": True,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        },
    ),
    "llama-classes": ("LlamaForSequenceClassification", {**SIZES, "num_labels": 3}),
}


def record(kind: str, options: dict[str, object]) -> dict[str, object]:
    base = kind.partition("For")[0].removesuffix("Model")
    config_class = getattr(transformers, ("Gemma3Text" if base == "Gemma3" else base) + "Config")
    encoder = base in ("Bert", "Ernie")
    is_class = "For" in kind or kind.endswith("Model")
    name = kind if is_class else kind + ("Model" if encoder else "LMHeadModel" if base == "GPT2" else "ForCausalLM")
    config = config_class(**options)
    config._attn_implementation = "eager"
    with tempfile.TemporaryDirectory() as folder:
        getattr(transformers, name)(config).save_pretrained(folder)
        path = Path(folder) / "model.safetensors"
        shapes = {key: list(tensor.shape) for key, tensor in load_file(path).items()}
        save_file({key: torch.from_numpy(weights(key, shape)) for key, shape in shapes.items()}, path, {"format": "pt"})
        model = getattr(transformers, name).from_pretrained(folder, attn_implementation="eager").eval()
        given = json.loads((Path(folder) / "config.json").read_text())
    padding = [[True] * 12, [True] * 9 + [False] * 3]
    ids = [[token if real else 0 for token, real in zip(*row, strict=True)] for row in zip(IDS, padding, strict=True)]
    with torch.no_grad():
        whole = model(torch.tensor(IDS))
        padded = model(torch.tensor(ids), attention_mask=torch.tensor(padding).long())
    get = (lambda out: out.logits) if "For" in name or "LMHead" in name else (lambda out: out.last_hidden_state)
    found = {
        "config": given,
        "tensors": shapes,
        "ids": IDS,
        "outputs": rounded(get(whole)),
        "padded": rounded(get(padded)),
    }
    if name.endswith(("ForCausalLM", "LMHeadModel")):
        found["prompts"], found["greedy"] = zip(*(continuation(model, row) for row in IDS), strict=True)
    return found


def continuation(model: torch.nn.Module, prompt: list[int]) -> tuple[list[int], list[int]]:
    """A prompt, which is ``prompt`` with its last id counted up until no token is nearly a tie, and the most likely
    tokens after it, computed of the whole text each."""
    for last in range(48):
        ids = [*prompt[:-1], (prompt[-1] + last) % 48]
        while len(ids) < len(prompt) + GREEDY:
            with torch.no_grad():
                logits = model(torch.tensor([ids]), use_cache=False).logits[0, -1]
            (first, second), (token, _) = (part.tolist() for part in logits.topk(2))
            if first - second < TIE * logits.abs().max():
                break
            ids.append(token)
        else:
            return ids[: len(prompt)], ids[len(prompt) :]
    raise RuntimeError("every prompt leads to a tie")


def rounded(x: torch.Tensor) -> list:
    return [float(f"{v:.7g}") for v in x.flatten().tolist()]


if __name__ == "__main__":
    wanted = sys.argv[1:] or CASES
    (HERE / "records").mkdir(exist_ok=True)
    for case in wanted:
        made = record(*CASES[case])
        made["versions"] = {"transformers": transformers.__version__, "torch": torch.__version__}
        (HERE / "records" / f"{case}.json").write_text(json.dumps(made, separators=(",", ":")) + "\n")
        sys.stdout.write(f"{case}\n")
