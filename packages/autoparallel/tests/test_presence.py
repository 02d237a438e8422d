"""Dispatch knows of distributed tensors only while there are some."""

import gc

import numpy as np
from ranks import on_ranks

from argosy_autoparallel import ProcessMesh, Replicate, Shard, is_dist, reshard, set_world, shard_tensor
from argosy_autoparallel.interpreter import SpmdLayer
from argosy_hwadapt.inproc import run_ranks
from argosy_phi_ops.context import AMBIENT, Context, bind_context, context
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.dispatch import Interpreter, layer, suspend_layers
from argosy_tensorcore.tensor import Tensor


def _serving():
    return [each for each in context().layers if type(each) is SpmdLayer]


def _alone(function):
    """``function()`` as the only rank of a world, in a context of its own; what it returns."""

    def main(communicator):
        with bind_context(Context(0, 1)):
            set_world(communicator)
            return function()

    return run_ranks(main, 1)[0]


def test_dispatch_is_plain_again_after_the_last_distributed_tensor():
    """The ambient word rises with a rank's first distributed tensor and falls with its last; results count too."""

    def program():
        gc.collect()  # what other tests left behind
        word = AMBIENT.word
        x = shard_tensor(np.ones((4, 2), np.float32), ProcessMesh([0]), [Shard(0)])
        y = get_operator("add")(x, x)
        during = AMBIENT.word
        del x
        gc.collect()
        held = AMBIENT.word
        del y
        gc.collect()
        return during - word, held - word, AMBIENT.word - word

    assert _alone(program) == (1, 1, 0)


def test_a_second_life_works_like_the_first():
    """Distributed tensors made after all others are gone run as they did, with one layer."""

    def program():
        found = []
        for _ in range(2):
            x = shard_tensor(np.ones((4, 2), np.float32), ProcessMesh([0]), [Shard(0)])
            y = get_operator("add")(x, x)
            found.append((is_dist(y), y.numpy().tolist(), len(_serving())))
            del x, y
            gc.collect()
        return found

    assert _alone(program) == [(True, [[2, 2]] * 4, 1)] * 2


def test_the_layer_goes_with_the_last_tensor():
    def program():
        x = shard_tensor(np.ones(2, np.float32), ProcessMesh([0]))
        y = x
        del x
        before = len(_serving())
        del y
        gc.collect()
        return before, len(context().layers)

    assert _alone(program) == (1, 0)


def test_the_layer_may_go_in_the_middle_of_an_operator():
    class Dropping(Interpreter):
        def __init__(self, held):
            self.held = held

        def process(self, op, operands, attributes, below):
            self.held.clear()
            gc.collect()
            return below(op, operands, attributes)

    def program():
        held = [shard_tensor(np.ones(2, np.float32), ProcessMesh([0]))]
        plain = Tensor(np.array([1.5], np.float32))
        with layer(Dropping(held)):
            made = get_operator("add")(plain, plain).numpy().tolist()
        return made, len(context().layers)

    assert _alone(program) == ([3.0], 0)


def test_the_layer_stays_below_others_and_survives_suspension():
    """A first distributed tensor made inside other layers, or while they are suspended, finds its operators."""

    class Other(SpmdLayer):
        stays = False

        def process(self, op, operands, attributes, below):
            return below(op, operands, attributes)

    def program():
        with layer(Other()):
            with suspend_layers():
                x = shard_tensor(np.ones(2, np.float32), ProcessMesh([0]))
            kinds = [type(each).__name__ for each in context().layers]
            y = get_operator("add")(x, 1)
        return kinds, is_dist(y), len(context().layers)

    assert _alone(program) == (["SpmdLayer", "Other"], True, 1)


def test_an_ordinary_tensor_is_laid_out_without_others():
    """reshard of an ordinary tensor, the first thing that a rank does, gives a distributed one with its gradient."""

    def program(rank):
        x = get_operator("full")([4, 2], 3.0)
        y = reshard(x, ProcessMesh([0, 1]), [Shard(0)])
        z = reshard(y, ProcessMesh([0, 1]), [Replicate()])
        return y._local_value().shape, z.numpy().tolist()

    assert on_ranks(program, 2) == [([2, 2], [[3, 3]] * 4)] * 2
