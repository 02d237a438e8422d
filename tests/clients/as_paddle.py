"""A plugin of pytest: ``import paddle`` gives argosy, for the suites of libraries that have a Paddle back end.

In a checkout of the library, with this folder on PYTHONPATH:

    EINOPS_TEST_BACKENDS=numpy,paddle python -m pytest -p as_paddle einops/tests
    TENSORLY_BACKEND=paddle python -m pytest -p as_paddle tensorly
    python -m pytest -p as_paddle bindings/python/tests/test_paddle_comparison.py      # safetensors

What they gave stands in docs/COVERAGE.md.
"""

import sys

import argosy

argosy.__version__ = "3.1.0"  # the last before MmapStorage, which argosy does not have
sys.modules["paddle"] = argosy
