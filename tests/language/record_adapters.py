"""Records what PEFT on torch computes with adapters of tiny models; run in an environment of its own:

    python tests/language/record_adapters.py

(peft, transformers 5, torch). A record holds each ``adapter_config.json``, the names and shapes of its tensors, and
logits; the base models are records of ``record.py``, and the weights follow from the tensors' names.
"""

import json
import sys
import tempfile
from pathlib import Path

import peft
import torch
import transformers
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(Path(__file__).parent))
from weights_by_name import weights

HERE = Path(__file__).parent
CASES = {
    "attention": {"base": "llama", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"]},
    "all": {
        "base": "llama", "r": 3, "lora_alpha": 6, "use_rslora": True, "target_modules": "all-linear",
        "rank_pattern": {"down_proj": 5}, "alpha_pattern": {"layers.1.self_attn.o_proj": 9},
    },
    "experts": {"base": "mixtral", "r": 2, "lora_alpha": 6, "target_modules": "all-linear"},
    "experts side by side": {
        "base": "gpt_oss", "r": 2, "lora_alpha": 3, "target_modules": ["o_proj"],
        "target_parameters": ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"],
    },
    "matrices side by side": {"base": "phi3", "r": 3, "lora_alpha": 2, "target_modules": ["qkv_proj", "gate_up_proj"]},
}  # fmt: skip


def record(folder: Path, base: str, **options: object) -> dict[str, object]:
    """What the adapter of ``options`` makes of the record ``base``."""
    known = json.loads((HERE / "records" / f"{base}.json").read_text())
    (folder / "config.json").write_text(json.dumps(known["config"]))
    tensors = {name: torch.from_numpy(weights(name, shape)) for name, shape in known["tensors"].items()}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
    path = folder / "adapter"
    peft.get_peft_model(model, peft.LoraConfig(**options)).save_pretrained(path)
    file = path / "adapter_model.safetensors"
    shapes = {key: list(tensor.shape) for key, tensor in load_file(file).items()}
    made = {key: torch.from_numpy(0.3 * weights(key, shape)) for key, shape in shapes.items()}
    save_file(made, file, {"format": "pt"})
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
    with torch.no_grad():
        logits = peft.PeftModel.from_pretrained(model, path).eval()(torch.tensor(known["ids"])).logits
    config = json.loads((path / "adapter_config.json").read_text()) | {"base_model_name_or_path": base}
    outputs = [float(f"{v:.7g}") for v in logits.flatten().tolist()]
    return {"base": base, "config": config, "tensors": shapes, "outputs": outputs}


def main() -> None:
    found = {}
    for case, options in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            found[case] = record(Path(folder), **options)
    versions = {"peft": peft.__version__, "transformers": transformers.__version__, "torch": torch.__version__}
    (HERE / "adapters.json").write_text(json.dumps({**found, "versions": versions}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
