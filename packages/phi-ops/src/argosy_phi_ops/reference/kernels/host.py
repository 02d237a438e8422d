"""The kernel of ``host_call``: the registered function itself."""

from collections.abc import Mapping
from typing import Any

from argosy_phi_ops.custom_ops.host_functions import find_host
from argosy_phi_ops.reference.kernels.registry import Array, kernel


@kernel("host_call")
def host_call(*operands: Array, function: str, arguments: Mapping[str, Any]) -> Any:
    """What the function returns, checked against its type rule; one result bare, several as a tuple."""
    results = find_host(function).run(operands, arguments)
    return results[0] if len(results) == 1 else tuple(results)
