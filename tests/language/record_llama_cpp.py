"""Records what llama.cpp generates from GGUF files, and how it cuts texts; argosy writes the files, and
llama-cpp-python runs them in an environment of its own, whose interpreter is named:

    python tests/language/record_llama_cpp.py --python LLAMA_CPP/bin/python

A record is 64 greedy tokens after two prompts. Llama.cpp rounds the operands of its products to the weights' format,
of blocks to eight bits, so prompts are drawn until no step is nearer to a tie than that changes logits. Of matrices of
four bits in groups of groups (``Q4_K``) it writes the file, which stays beside the record.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
NEAREST = {"F16": 0.003, "BF16": 0.015, "Q8_0": 0.015, "Q4_0": 0.015, "Q4_K": 0.03}
"""The least difference of the two best logits, relative to the largest."""
LENGTH = 64


def write_files(python: str, folder: Path) -> None:
    """Write the files, ask llama.cpp, and keep what it says."""
    sys.path.insert(0, str(HERE.parent))
    from argosy import models
    from language import test_llama_cpp as test

    paths = {}
    for case in test.CASES:
        (folder / case).mkdir()
        paths[case] = str(test.write_file(case, folder / case))
    for kind in test.KINDS:
        (folder / f"text-{kind}").mkdir()
        paths[f"text-{kind}"] = str(test.write_text_file(kind, folder / f"text-{kind}")[0])
    task = {"paths": paths, "cases": test.CASES, "kinds": test.KINDS, "texts": test.TEXTS}
    found = subprocess.run([python, __file__, "--ask"], input=json.dumps(task), capture_output=True, text=True)
    if found.returncode:
        sys.exit(found.stderr)
    (HERE / "llama_cpp.json").write_text(found.stdout.splitlines()[-1] + "\n")
    assert models.load_model(HERE / "llama_cpp_q4_k.gguf") is not None


def ask(task: dict) -> dict:
    """What llama.cpp says of files (run by its interpreter)."""
    import llama_cpp
    import numpy as np

    def greedy(model, prompt: list[int], nearest: float) -> list[int] | None:
        """The tokens after a prompt; None where a step is too near to a tie."""
        made: list[int] = []
        model.reset()
        model.eval(prompt)
        while len(made) < LENGTH:
            logits = np.asarray(model.scores[model.n_tokens - 1])
            second, first = np.sort(logits)[-2:]
            if first - second < nearest * np.abs(logits).max():
                return None
            made.append(int(logits.argmax()))
            model.eval(made[-1:])
        return made

    def records(case: str) -> list[tuple[list[int], list[int]]]:
        """Two prompts with the tokens after them."""
        model = llama_cpp.Llama(paths[case], n_ctx=80, logits_all=True, n_threads=1, verbose=False)
        found, draw = [], np.random.default_rng(0)
        while len(found) < 2:
            prompt = draw.integers(0, 48, 12).tolist()
            if tokens := greedy(model, prompt, NEAREST.get(case, 1e-4)):
                found.append((prompt, tokens))
        return found

    paths = task["paths"]
    options = llama_cpp.llama_model_quantize_default_params()
    options.ftype = llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_K_M
    quantized = str(HERE / "llama_cpp_q4_k.gguf")
    assert llama_cpp.llama_model_quantize(paths["Q4_K"].encode(), quantized.encode(), options) == 0
    paths["Q4_K"] = quantized
    found = {case: records(case) for case in task["cases"]}
    ids = {}
    for kind in task["kinds"]:
        model = llama_cpp.Llama(paths[f"text-{kind}"], vocab_only=True, verbose=False)
        ids[kind] = [model.tokenize(text.encode(), add_bos=True, special=True) for text in task["texts"]]
    return {"greedy": found, "ids": ids, "versions": {"llama-cpp-python": llama_cpp.__version__}}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", help="the interpreter of an environment with llama-cpp-python")
    parser.add_argument("--ask", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.ask:
        sys.stdout.write(json.dumps(ask(json.load(sys.stdin)), separators=(",", ":")))
    else:
        with tempfile.TemporaryDirectory() as name:
            write_files(chosen.python, Path(name))
