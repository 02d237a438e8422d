"""Records what transformers on torch finds by beam search with tiny models; run in an environment of its own:

    python tests/language/record_beams.py

(transformers 5, torch). The models are records of ``record.py``. A record holds prompt, settings, and the tokens of
each text, without those that end it, and its score. Searches with texts whose scores are nearly equal are left out.
"""

import json
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file

sys.path.insert(0, str(Path(__file__).parent))
from weights_by_name import weights

HERE = Path(__file__).parent
MODELS = ("llama", "mistral", "gpt_oss", "deepseek_v3")
ENDS = [7, 20, 33, 11, 5, 40]
SEARCHES = [
    {"num_beams": 2, "max_new_tokens": 12},
    {"num_beams": 4, "max_new_tokens": 20, "num_return_sequences": 4},
    {"num_beams": 3, "max_new_tokens": 15, "num_return_sequences": 2, "length_penalty": 0.0, "early_stopping": True},
    {"num_beams": 5, "max_new_tokens": 16, "num_return_sequences": 5, "length_penalty": 2.0, "early_stopping": "never"},
    {"num_beams": 4, "max_new_tokens": 9, "length_penalty": -1.0, "min_new_tokens": 4, "repetition_penalty": 1.3},
    {"num_beams": 3, "max_new_tokens": 14, "no_repeat_ngram_size": 2, "early_stopping": "never"},
]
TIE = 1e-4


def record(base: str) -> list[dict[str, object]]:
    """The searches of the record ``base``."""
    known, found = json.loads((HERE / "records" / f"{base}.json").read_text()), []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(known["config"]))
        tensors = {name: torch.from_numpy(weights(name, shape)) for name, shape in known["tensors"].items()}
        save_file(tensors, Path(folder) / "model.safetensors", {"format": "pt"})
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
    for prompt in known["prompts"]:
        for settings in SEARCHES:
            for ends in ([], ENDS):
                given = settings | {"num_return_sequences": settings["num_beams"]}
                real = torch.ones(1, len(prompt), dtype=torch.long)
                given |= {"eos_token_id": ends or None, "pad_token_id": 0, "do_sample": False}
                given |= {"return_dict_in_generate": True, "output_scores": True}
                made = model.generate(torch.tensor([prompt]), attention_mask=real, **given)
                scores = made.sequences_scores.tolist()
                if all(first - second > TIE for first, second in pairwise(scores)):
                    texts = [text(row[len(prompt) :].tolist(), ends) for row in made.sequences]
                    count = settings.get("num_return_sequences", 1)
                    found.append(
                        {"base": base, "prompt": prompt, "settings": settings, "ends": ends, "texts": texts[:count]}
                        | {"scores": [float(f"{score:.7g}") for score in scores[:count]]}
                    )
    return found


def text(tokens: list[int], ends: list[int]) -> list[int]:
    """The tokens before the one that ends them."""
    return tokens[: next((i for i, token in enumerate(tokens) if token in ends), len(tokens))]


if __name__ == "__main__":
    searches = [search for base in MODELS for search in record(base)]
    versions = {"transformers": transformers.__version__, "torch": torch.__version__}
    (HERE / "beams.json").write_text(
        json.dumps({"searches": searches, "versions": versions}, separators=(",", ":")) + "\n"
    )
    sys.stdout.write(f"{len(searches)} searches\n")
