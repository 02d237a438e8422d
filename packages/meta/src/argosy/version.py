"""The version of Paddle whose interface this is; argosy's own is ``argosy.__version__``."""

import sys

from argosy.__about__ import __version__

__all__ = ["cuda", "cuda_archs", "cudnn", "hip", "nccl", "show", "tensorrt", "xpu", "xpu_xccl", "xpu_xhpc", "xpu_xre"]

major, minor, patch, rc = "3", "3", "1", "0"
full_version = f"{major}.{minor}.{patch}"
cuda_version = cudnn_version = "False"
commit = f"argosy {__version__}"
is_tagged = True


def cuda() -> str:
    """``"False"``: devices come as packages of their own."""
    return cuda_version


def cudnn() -> str:
    """``"False"``, as :func:`cuda`."""
    return cudnn_version


def nccl() -> str:
    """``"0"``: ranks talk over MPI or as threads of one process."""
    return "0"


def xpu() -> str:
    """``"False"``, as :func:`cuda`."""
    return "False"


def xpu_xre() -> str:
    """``"False"``, as :func:`cuda`."""
    return "False"


xpu_xccl = xpu_xhpc = xpu_xre


def hip() -> None:
    """None: there is no ROCm."""


def tensorrt() -> str:
    """``"None"``: there is no TensorRT."""
    return "None"


def cuda_archs() -> list[int]:
    """The CUDA architectures that kernels were compiled for: none."""
    return []


def show() -> None:
    """Print the version of the interface and argosy's own."""
    lines = [f"full_version: {full_version}", f"commit: {commit}", f"cuda: {cuda()}", f"cudnn: {cudnn()}"]
    sys.stdout.write("\n".join(lines) + "\n")
