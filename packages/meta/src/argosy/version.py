"""The version of Paddle whose interface this is; argosy's own is ``argosy.__version__``."""

import sys

from argosy.__about__ import __version__

__all__ = ["cuda", "cudnn", "nccl", "show", "xpu"]

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


def show() -> None:
    """Print the version of the interface and argosy's own."""
    lines = [f"full_version: {full_version}", f"commit: {commit}", f"cuda: {cuda()}", f"cudnn: {cudnn()}"]
    sys.stdout.write("\n".join(lines) + "\n")
