"""Records layers that AutoGPTQ, AutoAWQ and compressed-tensors pack, and what they multiply with; run in an environment
of its own, where the packages' torch code alone is imported (their CUDA extensions are not needed):

    python tests/language/record_quantized.py

``quantized.safetensors`` holds for each form its tensors by their suffix, inputs ``x`` and products ``y``; its metadata
are the settings that stand in ``config.json``.
"""

import importlib.util
import json
import sys
import types
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import torch
from compressed_tensors.compressors.pack_quantized.base import PackedQuantizationCompressor
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from safetensors.torch import save_file

SIZE, OUT, GROUP = 64, 32, 32
Layer = tuple[dict[str, torch.Tensor], torch.Tensor, dict[str, object]]


def bare(package: str) -> None:
    """Let modules below ``package`` be imported without what packages import on their way."""
    parts = package.split(".")
    known = sys.modules.get(parts[0])
    paths = known.__path__ if known else importlib.util.find_spec(parts[0]).submodule_search_locations
    for i in range(1, len(parts) + 1):
        module = types.ModuleType(".".join(parts[:i]))
        module.__path__ = [str(Path(path, *parts[1:i])) for path in paths]
        sys.modules[module.__name__] = module


def rounded(bits: int, symmetric: bool, groups: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A weight [out, in], and scales and zeros [out, groups] of unsigned numbers."""
    weight = torch.randn(OUT, SIZE) / SIZE**0.5
    parts = [weight[:, groups == g] for g in range(int(groups.max()) + 1)]
    low, high = (torch.stack([f(p, 1).values for p in parts], 1) for f in (torch.min, torch.max))
    if symmetric:
        scales = torch.maximum(-low, high) / (2 ** (bits - 1) - 1)
        return weight, scales.half().float(), torch.full_like(scales, 2 ** (bits - 1))
    scales = ((high - low) / (2**bits - 1)).half().float()
    return weight, scales, torch.round(-low / scales)


def gptq(bits: int, symmetric: bool, ordered: bool) -> Layer:
    layers = import_module("auto_gptq.nn_modules.qlinear.qlinear_cuda")
    groups = torch.arange(SIZE) // GROUP
    groups = groups[torch.randperm(SIZE)] if ordered else groups
    weight, scales, zeros = rounded(bits, symmetric, groups)
    linear = torch.nn.Linear(SIZE, OUT, bias=False)
    linear.weight.data = weight
    made = layers.QuantLinear(bits, GROUP, SIZE, OUT, False, weight_dtype=torch.float32)
    made.pack(linear, scales, zeros, groups.int())
    x = torch.randn(3, SIZE)
    tensors = {name: getattr(made, name) for name in ("qweight", "qzeros", "scales", "g_idx")}
    tensors["scales"] = tensors["scales"].half()
    settings = {"quant_method": "gptq", "bits": bits, "group_size": GROUP, "desc_act": ordered, "sym": symmetric}
    return {**tensors, "x": x}, made(x), settings


def awq() -> Layer:
    layers = import_module("awq.modules.linear.gemm")
    weight, scales, zeros = rounded(4, False, torch.arange(SIZE) // GROUP)
    linear = torch.nn.Linear(SIZE, OUT, bias=False)
    linear.weight.data = weight
    made = layers.WQLinear_GEMM.from_linear(linear, 4, GROUP, scales=scales.T.contiguous(), zeros=zeros.T.contiguous())
    tensors = {name: getattr(made, name) for name in ("qweight", "qzeros", "scales")}
    x = torch.randn(3, SIZE)
    plain = layers.dequantize_gemm(made.qweight, made.qzeros, made.scales.float(), 4, GROUP)
    settings = {"quant_method": "awq", "bits": 4, "group_size": GROUP, "version": "gemm", "zero_point": True}
    return {**tensors, "x": x}, x @ plain, settings


def compressed(bits: int, symmetric: bool) -> Layer:
    arguments = QuantizationArgs(num_bits=bits, type="int", symmetric=symmetric, strategy="group", group_size=GROUP)
    scheme = QuantizationScheme(targets=["Linear"], weights=arguments)
    weight, scales, zeros = rounded(bits, symmetric, torch.arange(SIZE) // GROUP)
    given = {"weight": weight, "weight_scale": scales}
    if not symmetric:
        given["weight_zero_point"] = (zeros - 2 ** (bits - 1)).to(torch.int8)
    tensors = PackedQuantizationCompressor.compress(given, scheme)
    plain = PackedQuantizationCompressor.decompress(tensors, scheme)["weight"]
    x = torch.randn(3, SIZE)
    groups = {"group_0": {"targets": ["Linear"], "weights": json.loads(arguments.model_dump_json())}}
    settings = {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": groups}
    return {**tensors, "x": x}, x @ plain.T, settings


def main() -> None:
    for package in ("auto_gptq.nn_modules.qlinear", "awq.modules.linear", "awq.utils"):
        bare(package)
    torch.manual_seed(0)
    made = {
        "gptq": gptq(4, True, False), "gptq asymmetric": gptq(4, False, False), "gptq ordered": gptq(4, False, True),
        "gptq eight bits": gptq(8, True, False), "awq": awq(), "compressed": compressed(4, True),
        "compressed asymmetric": compressed(4, False), "compressed eight bits": compressed(8, True),
    }  # fmt: skip
    tensors = {
        f"{form}/{name}": t.contiguous()
        for form, (parts, y, _) in made.items()
        for name, t in {**parts, "y": y}.items()
    }
    metadata = {form: json.dumps(settings) for form, (*_, settings) in made.items()}
    packages = ("auto-gptq", "autoawq", "compressed-tensors", "torch")
    metadata["versions"] = json.dumps({name: version(name) for name in packages})
    with torch.no_grad():
        save_file(
            {k: v.detach() for k, v in tensors.items()}, Path(__file__).parent / "quantized.safetensors", metadata
        )


if __name__ == "__main__":
    main()
