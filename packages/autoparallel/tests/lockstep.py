"""All ranks of a mesh in one thread, in step from one collective to the next, and tensors as the ranks' parts.

Proofs go through many small programs, and threads that wait for each other cost more than those. The kernels are those
of the reference interpreter, communication included: a kernel, loop or branch is run up to where it would communicate,
and again when every rank of its group has come that far.
"""

from collections.abc import Mapping

import numpy as np

from argosy_autoparallel import Partial, ReduceType, Shard
from argosy_hwadapt.communicator import DONE, reduce_arrays
from argosy_phi_ops.reference.interpreter import BlockPlan, Execution


class _Arrived(Exception):
    """A rank's call of a collective: its name, its group, what it sends and how that is reduced."""

    def __init__(self, *call):
        super().__init__(call)
        self.call = call


class _Asking(Mapping):
    """Communicators by group that give the ``answers`` there are by now, and tell of the first call that has none."""

    def __init__(self, answers):
        self._answers = iter(answers)

    def __getitem__(self, group):
        self.group = tuple(group)
        return self

    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0

    def get(self, group, default=None):
        """The one for any group."""
        return self[group]

    def _answer(self, *call):
        for answer in self._answers:
            return answer
        raise _Arrived(*call)

    def all_reduce(self, send, recv, op="sum"):
        """See :class:`Communicator`; so are the others."""
        recv.reshape(-1)[:] = self._answer("all_reduce", self.group, send, op)

    def all_gather(self, send, recv):
        recv.reshape(-1)[:] = self._answer("all_gather", self.group, send, "")

    def reduce_scatter(self, send, recv, op="sum"):
        recv.reshape(-1)[:] = self._answer("reduce_scatter", self.group, send, op)

    def all_gather_coalesced(self, sends, recvs):
        for send, recv in zip(sends, recvs, strict=True):
            self.all_gather(send, recv)

    def reduce_scatter_coalesced(self, sends, recvs, op="sum"):
        for send, recv in zip(sends, recvs, strict=True):
            self.reduce_scatter(send, recv, op)

    def all_to_all(self, send, recv):
        recv.reshape(-1)[:] = self._answer("all_to_all", self.group, send, "")

    def send(self, buffer, peer, tag=0):
        self._answer("send", peer, np.array(buffer), tag)

    def recv(self, buffer, peer, tag=0):
        answer = self._answer("recv", peer, buffer, tag)
        assert (buffer.shape, buffer.dtype) == (answer.shape, answer.dtype)
        buffer[...] = answer

    def __getattr__(self, name):
        """What is started is done at once."""
        if not name.startswith("start_"):
            raise AttributeError(name)
        return lambda *args: getattr(self, name.removeprefix("start_"))(*args) or DONE


def _meet(kind, sent, op):
    """What each rank of a group gets, flat."""
    flat = [array.reshape(-1) for array in sent]
    if kind == "all_gather":
        return [np.concatenate(flat)] * len(flat)
    if kind == "all_to_all":
        parts = np.stack([array.reshape(len(flat), -1) for array in flat])
        return [parts[:, i].reshape(-1) for i in range(len(flat))]
    total = reduce_arrays(flat, op)
    return [total] * len(flat) if kind == "all_reduce" else list(total.reshape(len(flat), -1))


def _one_rank(program, arrays):
    """A generator that runs a program: it yields the calls of collectives, and gets what they give."""
    plan = BlockPlan(program.block, program)
    environment = dict(zip(plan.arguments, arrays, strict=True))
    for step, dead in plan.steps:
        answers = []
        while True:  # from its beginning: a loop or branch may communicate several times
            try:
                step(Execution({}, _Asking(answers)), environment)
                break
            except _Arrived as arrived:
                call = arrived.call
            answers.append((yield call))
        for value in dead:
            del environment[value]
    return [environment[value] for value in plan.returned]


def run_together(programs, inputs, ranks):
    """The outputs of each rank's program; ``ranks`` are their numbers. Fails where they do not communicate alike."""
    running = {rank: _one_rank(p, arrays) for rank, p, arrays in zip(ranks, programs, inputs, strict=True)}
    waiting, done, answers, messages = {}, {}, dict.fromkeys(ranks), {}
    while len(done) < len(ranks):
        for rank in [r for r in ranks if r not in waiting and r not in done]:
            try:
                waiting[rank] = running[rank].send(answers.pop(rank, None))
            except StopIteration as stop:
                done[rank] = stop.value
        passed = _pass_messages(waiting, messages)
        answers.update(passed)
        met = [c for c in waiting.values() if c[0] != "recv" and all(m in waiting for m in c[1])]
        assert met or passed or not waiting, f"ranks {sorted(waiting)} wait for others, which are done: {waiting}"
        for kind, group, _, op in met:
            if group[0] in waiting:
                calls = [waiting.pop(m) for m in group]
                told = {(c[0], c[1], c[2].size, c[2].dtype, c[3]) for c in calls}
                assert len(told) == 1, f"ranks {group} call different collectives: {told}"
                answers.update(zip(group, _meet(kind, [c[2] for c in calls], op), strict=True))
    assert not any(messages.values()), f"nobody receives {messages}"
    return [done[rank] for rank in ranks]


def _pass_messages(waiting, messages):
    """Take sent arrays into ``messages`` and give them to those that wait for them; the answers by rank."""
    answers = {}
    for rank, (_, peer, array, tag) in [(r, c) for r, c in waiting.items() if c[0] == "send"]:
        messages.setdefault((rank, peer, tag), []).append(array)
        answers[rank] = None
    for rank, (_, peer, _, tag) in [(r, c) for r, c in waiting.items() if c[0] == "recv"]:
        if messages.get((peer, rank, tag)):
            answers[rank] = messages[peer, rank, tag].pop(0)
    for rank in answers:
        del waiting[rank]
    return answers


# Terms of reductions: what a rank adds to a term (or takes from it) so that ranks differ and the result stays.


_EITHER = {ReduceType.kRedAny, ReduceType.kRedSum, ReduceType.kRedMax}  # of booleans


def _terms(array, kind, where, size):
    """The term of the rank at ``where`` among ``size`` along a mesh dimension, of a reduction that gives ``array``."""
    if size == 1:
        return array
    some = (np.indices(array.shape).sum(0) % 2 == where % 2) if where < 2 else np.zeros(array.shape, bool)
    if array.dtype == bool:
        return array & some if kind in _EITHER else array | ~some
    half = np.asarray(0.5 if array.dtype.kind in "fc" else 1).astype(array.dtype)
    if kind in (ReduceType.kRedSum, ReduceType.kRedAvg):
        base = array if where == 0 or kind is ReduceType.kRedAvg else np.zeros_like(array)
        return base + half if where == 0 else base - half if where == 1 else base
    if kind is ReduceType.kRedProd:
        one = np.ones_like(array)
        if array.dtype.kind not in "fc":
            return array if where == 0 else one
        return array * half if where == 0 else one / half if where == 1 else one
    if kind is ReduceType.kRedMax:
        return np.where(some, array, array - half if array.dtype.kind != "u" else array - (array > 0) * half)
    return np.where(some, array, array + half)


def parts_of(array, layout, exact=False):
    """The ranks' parts of ``array`` in ``layout``, in the order of the mesh; terms differ unless ``exact``."""
    made = []
    for rank in layout.mesh.process_ids:
        part = np.asarray(array[layout.local_slice(array.shape, rank).slices()])
        where = layout.mesh.coordinate(rank)
        for placement, at, size in zip(layout.placements, where, layout.mesh.shape, strict=True):
            if isinstance(placement, Partial):
                kind = placement.reduce_type()
                part = _plain_term(part, kind, at) if exact else _terms(part, kind, at, size)
        made.append(np.array(part, order="C"))
    return made


def _plain_term(array, kind, where):
    """The term that adds nothing on all ranks but the first."""
    if where == 0 or kind not in (ReduceType.kRedSum, ReduceType.kRedProd):
        return array
    if kind is ReduceType.kRedProd:
        return np.ones_like(array)
    return -np.zeros_like(array) if array.dtype.kind in "fc" else np.zeros_like(array)


def whole_of(parts, layout):
    """The tensor whose parts in ``layout`` these are, in the order of the mesh; equal ones must have equal bits."""
    for placement, size in reversed(list(zip(layout.placements, layout.mesh.shape, strict=True))):
        parts = [_joined(parts[i : i + size], placement) for i in range(0, len(parts), size)]
    return parts[0]


def _joined(parts, placement):
    if isinstance(placement, Shard):
        return np.concatenate(parts, placement.dim)
    if isinstance(placement, Partial):
        return _reduced(parts, placement.reduce_type())
    for part in parts[1:]:
        np.testing.assert_array_equal(part, parts[0], err_msg="ranks differ in what all of them hold")
    return parts[0]


def _reduced(parts, kind):
    if parts[0].dtype == bool:
        return (np.logical_or if kind in _EITHER else np.logical_and).reduce(parts)
    name = {ReduceType.kRedAny: "max", ReduceType.kRedAll: "min"}.get(kind, kind.name.removeprefix("kRed").lower())
    return reduce_arrays([p.reshape(-1) for p in parts], name).reshape(parts[0].shape)
