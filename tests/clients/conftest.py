"""argosy in the place of paddle, for libraries that have a Paddle back end.

Their own suites run so, in a checkout of each:

    EINOPS_TEST_BACKENDS=numpy,paddle python -m pytest -p argosy.as_paddle einops/tests
    TENSORLY_BACKEND=paddle python -m pytest -p argosy.as_paddle tensorly
    python -m pytest -p argosy.as_paddle bindings/python/tests/test_paddle_comparison.py      # safetensors

What they gave stands in docs/COVERAGE.md.
"""

import pytest


@pytest.fixture
def as_paddle():
    """``import paddle`` gives argosy, without a change to the library that does so."""
    from argosy import as_paddle

    as_paddle.install()
    import paddle

    yield paddle
    as_paddle.uninstall()
