"""Why documented examples print something else here, or raise: by the key of the record."""

from __future__ import annotations

__all__ = ["REASONS"]

REASONS: dict[str, str] = {
    "Tensor.get_tensor": "gives the tensor itself: there is no class of inner tensors that prints in another way",
    "Tensor.grad": "the gradient has `stop_gradient=True`, the wheel's False",
    "amp.is_float16_supported": "operators compute in float16 on the cpu, where the wheel's do not",
    "autograd.PyLayer": "random values; the gradient has `stop_gradient=False`, where the wheel's has True",
    "distribution.Geometric.kl_divergence": "the wheel's is of one trial; a variable is as many as the mean of p says",
    "distribution.transform.TanhTransform": "the inverse of tanh(6) in float32, which both round by 1e-4 or more",
    "load#3": "reads a static program of Paddle's format; `jit.load` and `static.load_inference_model` do",
    "save#3": "writes a static program in Paddle's format; `jit.save` and `static.save_inference_model` write argosy's",
    "Model.summary": "the counts are Python's integers, the wheel's numpy's",
    "jit.ignore_module": "imports networkx, which is not installed where the examples ran",
    "nn.AdaptiveLogSoftmaxWithLoss": "random weights; the classes are int64, as labels are, the wheel's float32",
    "nn.functional.class_center_sample": "random labels, and random classes beside them",
    "nn.functional.hsigmoid_loss": "its label 5 is none of 5 classes, which argosy refuses",
    "nn.initializer.Assign": "assigns 2 numbers to a weight of 2 x 2, which argosy refuses",
    "sparse.sum": "a sum of all values has one coordinate, 0; the wheel prints it without its axes",
    "shape": "numpy prints the dtype of the wheel's long long integers, not of argosy's long ones",
    "linalg.eig": "eigenvectors are defined up to a factor",
    "isin": "calls `assume_unique=True` on what is not unique, to show that the result is wrong then",
    "argsort": "the order of equal elements without `stable=True`",
}
