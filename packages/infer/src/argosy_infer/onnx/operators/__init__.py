"""ONNX operators by theme; :mod:`argosy_infer.onnx.registry` loads them."""
