"""The most likely sequence of tags (Viterbi, 1967) of a linear chain."""

from __future__ import annotations

from typing import Any

from argosy.argument_checks import TensorLike, validate_call
from argosy.nn.layer import Layer
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_tensorcore.tensor import Tensor

__all__ = ["ViterbiDecoder", "viterbi_decode"]


@validate_call
def viterbi_decode(
    potentials: TensorLike,
    transition_params: TensorLike,
    lengths: TensorLike,
    include_bos_eos_tag: bool = True,
    name: str | None = None,
) -> tuple[Any, Any]:
    """(scores [batch], paths [batch, longest length]) of the best sequences of tags; paths are 0 after their end.

    potentials [batch, steps, tags]; transition_params [tags, tags]: from row to column; lengths [batch], whose largest
    is read. include_bos_eos_tag: the last tag is the start of all sequences, the last but one their end. Raises
    ValueError for shapes that do not fit and lengths that are not from 1 to the number of steps.
    """
    batch, steps = _check(potentials, transition_params, lengths)
    longest = int(lengths.max()) if batch else 0
    if batch and not 1 <= int(lengths.min()) <= longest <= steps:
        raise ValueError(f"viterbi_decode(): argument 'lengths' should be from 1 to {steps}, got {lengths.numpy()}")
    alpha, came = potentials[:, 0], []
    if include_bos_eos_tag:
        alpha = alpha + transition_params[-1]
    for step in range(longest):
        if step:
            total = alpha.unsqueeze(2) + transition_params.unsqueeze(0)
            came.append(total.argmax(1))
            alpha = op("where")((lengths > step).unsqueeze(1), total.max(1) + potentials[:, step], alpha)
        if include_bos_eos_tag:
            ends = (lengths == step + 1).unsqueeze(1).cast(alpha.dtype.name)
            alpha = alpha + ends * transition_params[-2]
    return alpha.max(1), _path(alpha.argmax(1), came, lengths)


def _check(potentials: Any, transitions: Any, lengths: Any) -> tuple[int, int]:
    shapes = [list(t.shape) for t in (potentials, transitions, lengths)]
    if len(shapes[0]) != 3 or shapes[1] != [shapes[0][2]] * 2 or shapes[2] != shapes[0][:1]:
        wanted = "potentials [batch, steps, tags], transition_params [tags, tags] and lengths [batch]"
        raise ValueError(f"viterbi_decode(): arguments {wanted} are wanted, got {', '.join(map(str, shapes))}")
    return int(shapes[0][0]), int(shapes[0][1])


def _path(last: Any, came: list[Any], lengths: Any) -> Any:
    """The tags [batch, steps] that lead to ``last``, by where each tag of a step ``came`` from."""
    tag, path = last, []
    for step in range(len(came), -1, -1):
        within = lengths > step
        path.append(op("where")(within, tag, op("zeros_like")(tag)))
        if step:
            before = op("take_along_axis")(came[step - 1], tag.unsqueeze(1), 1).squeeze(1)
            tag = op("where")(within, before, tag)
    return op("stack")(path[::-1], 1)


class ViterbiDecoder(Layer):
    """:func:`viterbi_decode` by these ``transitions``."""

    def __init__(self, transitions: Tensor, include_bos_eos_tag: bool = True, name: str | None = None) -> None:
        super().__init__()
        self.transitions, self.include_bos_eos_tag = transitions, include_bos_eos_tag

    def forward(self, potentials: Tensor, lengths: Tensor) -> tuple[Any, Any]:
        """Scores and paths."""
        return viterbi_decode(potentials, self.transitions, lengths, self.include_bos_eos_tag)
