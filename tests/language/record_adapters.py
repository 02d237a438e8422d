"""Records what PEFT on torch computes with two adapters of a tiny Llama; run in an environment of its own:

    python tests/language/record_adapters.py

(peft, transformers 5, torch). A record holds each ``adapter_config.json``, the names and shapes of its tensors, and
logits; the base model is the record ``llama`` of ``record.py``, and the weights follow from the tensors' names.
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
    "attention": {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"]},
    "all": {
        "r": 3, "lora_alpha": 6, "use_rslora": True, "target_modules": "all-linear",
        "rank_pattern": {"down_proj": 5}, "alpha_pattern": {"layers.1.self_attn.o_proj": 9},
    },
}  # fmt: skip


def main() -> None:
    base = json.loads((HERE / "records" / "llama.json").read_text())
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(base["config"]))
        tensors = {name: torch.from_numpy(weights(name, shape)) for name, shape in base["tensors"].items()}
        save_file(tensors, Path(folder) / "model.safetensors", {"format": "pt"})
        for case, options in CASES.items():
            model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
            path = Path(folder) / case
            peft.get_peft_model(model, peft.LoraConfig(**options)).save_pretrained(path)
            file = path / "adapter_model.safetensors"
            shapes = {key: list(tensor.shape) for key, tensor in load_file(file).items()}
            made = {key: torch.from_numpy(0.3 * weights(key, shape)) for key, shape in shapes.items()}
            save_file(made, file, {"format": "pt"})
            model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
            with torch.no_grad():
                logits = peft.PeftModel.from_pretrained(model, path).eval()(torch.tensor(base["ids"])).logits
            config = json.loads((path / "adapter_config.json").read_text()) | {"base_model_name_or_path": "llama"}
            outputs = [float(f"{v:.7g}") for v in logits.flatten().tolist()]
            found[case] = {"config": config, "tensors": shapes, "outputs": outputs}
    versions = {"peft": peft.__version__, "transformers": transformers.__version__, "torch": torch.__version__}
    (HERE / "adapters.json").write_text(json.dumps({**found, "versions": versions}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
