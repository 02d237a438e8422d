"""safetensors.paddle with argosy as its Paddle: tensors go to a file and to bytes, and come back."""

import numpy as np
import pytest

pytest.importorskip("safetensors")


@pytest.fixture
def library(as_paddle):
    """The module under test, imported while paddle is argosy."""
    return pytest.importorskip("safetensors.paddle")


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool"])
def test_files_and_bytes_keep_every_dtype(library, as_paddle, tmp_path, dtype):
    """Values, shapes and dtypes come back from a file and from bytes, and argosy reads the file itself."""
    x = as_paddle.to_tensor(np.arange(6).reshape(2, 3) % 2).astype(dtype)
    path = tmp_path / "x.safetensors"
    library.save_file({"x": x}, str(path))
    results = [library.load_file(str(path)), as_paddle.load(path)]
    if dtype != "bfloat16":  # the library itself reads bytes through numpy, which has no bfloat16
        results.append(library.load(library.save({"x": x})))
    for found in results:
        assert found["x"].dtype == x.dtype
        np.testing.assert_array_equal(found["x"].astype("float32").numpy(), x.astype("float32").numpy())


def test_open_files_give_tensors_and_slices(library, as_paddle, tmp_path):
    """safe_open(framework="paddle") gives argosy's tensors, whole and in parts."""
    from safetensors import safe_open

    path = str(tmp_path / "x.safetensors")
    library.save_file({"x": as_paddle.arange(12, dtype="float32").reshape([4, 3])}, path, {"made by": "test"})
    with safe_open(path, framework="paddle") as file:
        assert file.metadata() == {"made by": "test"}
        assert type(file.get_tensor("x")) is as_paddle.Tensor
        np.testing.assert_array_equal(file.get_slice("x")[1:3].numpy(), np.arange(3, 9).reshape(2, 3))
