"""Random numbers. They are argosy's own: an attribute ``seed`` does not give those of another framework."""

from __future__ import annotations

from typing import Any

from argosy_infer.onnx.document import dtype_name
from argosy_infer.onnx.registry import Values, onnx_operator
from argosy_infer.onnx.tensors import phi, prim, shape_of


def _declare(name: str, draw: Any, first: str, second: str, defaults: tuple[float, float]) -> None:
    def numbers(shape: Any, dtype: str, attributes: dict[str, Any]) -> Any:
        attributes.pop("seed", None)
        a, b = attributes.pop(first, defaults[0]), attributes.pop(second, defaults[1])
        if attributes:
            raise NotImplementedError(f"{name} with {', '.join(attributes)}")
        made = draw(list(shape), a, b)
        return made if made.payload.dtype.name == dtype else prim.cast(made, dtype=dtype)

    @onnx_operator(name, folds=False)
    def plain(*, shape: Any, dtype: int = 1, **attributes: Any) -> Any:
        return numbers(shape, dtype_name(dtype, name), attributes)

    @onnx_operator(f"{name}Like", folds=False)
    def like(x: Any, *, dtype: int | None = None, **attributes: Any) -> Any:
        found = x.payload.dtype.name if dtype is None else dtype_name(dtype, name)
        return numbers(shape_of(x), found, attributes)


_declare(
    "RandomUniform", lambda shape, low, high: phi.rand(shape, "float32") * (high - low) + low, "low", "high", (0, 1)
)
_declare("RandomNormal", lambda shape, mean, scale: phi.randn(shape, "float32") * scale + mean, "mean", "scale", (0, 1))


@onnx_operator("Bernoulli", folds=False)
def bernoulli(x: Any, *, dtype: int | None = None, seed: float | None = None) -> Any:
    """1 with probability ``x``, else 0."""
    found = x.payload.dtype.name if dtype is None else dtype_name(dtype, "Bernoulli")
    return prim.cast(prim.lt(phi.rand(list(shape_of(x)), "float32"), prim.cast(x, dtype="float32")), dtype=found)


@onnx_operator("Multinomial", folds=False)
def multinomial(x: Any, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> Any:
    """Classes by the logarithms of their probabilities [N, C]: [N, sample_size]."""
    return prim.cast(phi.multinomial(phi.softmax(x, -1), sample_size, True), dtype=dtype_name(dtype, "Multinomial"))


@onnx_operator("Dropout", since=12, folds=False)
def dropout(
    x: Any, ratio: Values | None = None, training_mode: Values | None = None, *, seed: int | None = None
) -> Any:
    """``x``; in training with zeros in place of a share of elements, the others larger; and which are kept."""
    share = 0.5 if ratio is None else float(ratio.reshape(-1)[0])
    if training_mode is None or not bool(training_mode.reshape(-1)[0]) or not share:
        return x, phi.full(list(shape_of(x)), True, "bool")
    kept = prim.ge(phi.rand(list(shape_of(x)), "float32"), share)
    return prim.select(kept, x * (1 / (1 - share)), phi.zeros_like(x)), kept


@onnx_operator("Dropout")
def dropout_in_inference(x: Any, *, ratio: float = 0.5) -> Any:
    """``x``, all of it kept."""
    return x, phi.full(list(shape_of(x)), True, "bool")
