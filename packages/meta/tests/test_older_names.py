"""What older libraries built on Paddle call past its public functions: operators by definition, readers, helpers."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import argosy as paddle
from argosy import reader
from argosy.common_ops_import import LayerHelper

BOXES = [
    [[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [0, 0, 9, 10]],
    [[0, 0, 5, 5], [0, 0, 5, 6], [8, 8, 9, 9], [40, 40, 50, 50]],
]
SCORES = [
    [[0.9, 0.9, 0.9, 0.9], [0.6, 0.8, 0.7, 0.2], [0.5, 0.4, 0.1, 0.55]],
    [[0.1, 0.1, 0.1, 0.1], [0.35, 0.6, 0.2, 0.9], [0.0, 0.1, 0.2, 0.3]],
]


def test_multiclass_nms3_gives_what_the_wheel_gives() -> None:
    """Recorded from paddlepaddle 3.3.1, with boxes shared by the classes and with boxes of each class."""
    boxes, scores = paddle.to_tensor(BOXES), paddle.to_tensor(SCORES)
    options = (0.3, 3, 3, 0.5, False, 1.0, 0)
    rows, numbers, counts = paddle._C_ops.multiclass_nms3(boxes, scores, None, *options)
    wanted = [
        [1, 0.8, 1, 1, 11, 11], [1, 0.7, 20, 20, 30, 30], [2, 0.55, 0, 0, 9, 10], [1, 0.9, 40, 40, 50, 50],
        [1, 0.6, 0, 0, 5, 6],
    ]  # fmt: skip
    np.testing.assert_array_equal(rows.numpy(), np.array(wanted, np.float32))
    assert numbers.tolist() == [[1], [2], [3], [7], [5]]
    assert counts.tolist() == [3, 2]
    assert numbers.dtype == counts.dtype == paddle.int32
    names = ("score_threshold", "nms_top_k", "keep_top_k", "nms_threshold", "normalized", "nms_eta", "background_label")
    pairs = [part for pair in zip(names, options, strict=True) for part in pair]
    legacy = paddle._legacy_C_ops.multiclass_nms3(boxes, scores, None, *pairs)
    assert [t.tolist() for t in legacy] == [t.tolist() for t in (rows, numbers, counts)]

    of_classes = [[BOXES[0][0], BOXES[0][1]], [BOXES[0][3], BOXES[0][2]], BOXES[1][:2], BOXES[1][:2]]
    chances = paddle.to_tensor([[0.5, 0.9], [0.6, 0.4], [0.7, 0.35], [0.8, 0.31]])
    given = paddle.to_tensor(of_classes), chances, paddle.to_tensor([2, 2], "int32")
    rows, numbers, counts = paddle._C_ops.multiclass_nms3(*given, 0.3, -1, -1, 0.5, True, 1.0, -1)
    wanted = [
        [0, 0.6, 0, 0, 9, 10], [1, 0.9, 1, 1, 11, 11], [1, 0.4, 20, 20, 30, 30], [0, 0.8, 0, 0, 5, 5],
        [1, 0.35, 0, 0, 5, 6],
    ]  # fmt: skip
    np.testing.assert_array_equal(rows.numpy(), np.array(wanted, np.float32))
    assert numbers.tolist() == [[2], [1], [3], [6], [5]]
    assert counts.tolist() == [3, 2]

    apart = paddle.to_tensor([[[0, 0, 5, 5]], [[20, 0, 25, 5]], [[40, 0, 45, 5]]], "float32")
    given = apart, paddle.to_tensor([[0.3], [0.9], [0.6]]), paddle.to_tensor([3], "int32")
    for most, order in ((-1, [0, 1, 2]), (2, [1, 2])):  # those of a class as the boxes come, not the best first
        rows, numbers, counts = paddle._C_ops.multiclass_nms3(*given, 0.1, -1, most, 0.5, True, 1.0, -1)
        assert numbers.tolist() == [[each] for each in order]

    rows, numbers, counts = paddle._C_ops.multiclass_nms3(boxes, scores * 0, None, *options)
    assert rows.shape == [0, 6]
    assert numbers.shape == [0, 1]
    assert counts.tolist() == [0, 0]
    with pytest.raises(ValueError, match=r"\[N, M, 4\] and \[N, C, M\], got"):
        paddle._C_ops.multiclass_nms3(boxes, scores[:, :, :3])


def test_operators_take_names_and_values_of_attributes_in_turn() -> None:
    old, ops = paddle._legacy_C_ops, paddle.vision.ops
    values, order = old.argsort(paddle.to_tensor([3.0, 1.0, 2.0]), "axis", 0, "descending", True)
    assert values.tolist() == [3.0, 2.0, 1.0]
    assert order.tolist() == [0, 2, 1]
    boxes, scores = paddle.to_tensor(BOXES), paddle.to_tensor(SCORES)
    limits = {"score_threshold": 0.1, "post_threshold": 0.1, "nms_top_k": 3, "keep_top_k": 4}
    pairs = [part for pair in limits.items() for part in pair]
    rows, numbers, counts = old.matrix_nms(boxes, scores, *pairs)
    expected = ops.matrix_nms(boxes, scores, **limits, return_index=True)
    assert [t.tolist() for t in (rows, counts, numbers)] == [t.tolist() for t in expected]
    spread, targets = [0.1, 0.1, 0.2, 0.2], boxes[1] + 1.0
    coded = old.box_coder(boxes[0], None, targets, "code_type", "encode_center_size", "variance", spread)
    assert coded.tolist() == ops.box_coder(boxes[0], spread, targets).tolist()
    regions, counts = boxes.reshape([-1, 4]), paddle.to_tensor([4, 4], "int32")
    levels = {"min_level": 2, "max_level": 4, "refer_level": 3, "refer_scale": 10}
    pairs = [part for pair in levels.items() for part in pair]
    found = old.distribute_fpn_proposals(regions, counts, 3, 3, *pairs)
    expected = ops.distribute_fpn_proposals(regions, **levels, rois_num=counts)
    assert [t.tolist() for t in (*found[0], found[1], *found[2])] == [
        t.tolist() for t in (*expected[0], expected[1], *expected[2])
    ]
    with pytest.raises(TypeError, match="names and values in turn"):
        old.argsort(paddle.to_tensor([3.0]), "axis")


def test_proposals_by_their_older_name() -> None:
    rng = np.random.default_rng(0)
    shapes = (1, 2, 3, 3), (1, 8, 3, 3)
    scores, deltas = (paddle.to_tensor(rng.uniform(0, 1, shape).astype("float32")) for shape in shapes)
    low = rng.uniform(0, 20, (3, 3, 2, 2))
    anchors = paddle.to_tensor(np.concatenate([low, low + 20], -1).astype("float32"))
    given = scores, deltas, paddle.to_tensor([[40.0, 40.0]]), anchors, paddle.ones_like(anchors)
    found = paddle._legacy_C_ops.generate_proposals_v2(*given, "pre_nms_topN", 9, "post_nms_topN", 4)
    wanted = paddle.vision.ops.generate_proposals(*given, pre_nms_top_n=9, post_nms_top_n=4, return_rois_num=True)
    assert [t.tolist() for t in found] == [t.tolist() for t in wanted]


def test_readers_are_made_of_readers() -> None:
    def numbers(n: int) -> reader.Reader:
        return lambda: iter(range(n))

    assert list(reader.chain(numbers(2), numbers(3))()) == [0, 1, 0, 1, 2]
    assert list(reader.firstn(numbers(9), 2)()) == [0, 1]
    assert list(reader.map_readers(lambda a, b: a + b, numbers(3), numbers(4))()) == [0, 2, 4]
    shuffled = list(reader.shuffle(numbers(7), 3)())
    assert sorted(shuffled[:3]) == [0, 1, 2]
    assert sorted(shuffled[3:6]) == [3, 4, 5]
    assert shuffled[6:] == [6]
    pairs = reader.compose(reader.map_readers(lambda a: (a, a), numbers(2)), numbers(2))
    assert list(pairs()) == [(0, 0, 0), (1, 1, 1)]
    assert list(reader.compose(numbers(2), numbers(3), check_alignment=False)()) == [(0, 0), (1, 1)]
    with pytest.raises(reader.ComposeNotAligned, match="1 of 2 readers"):
        list(reader.compose(numbers(2), numbers(3))())
    reads: list[int] = []
    kept = reader.cache(reader.map_readers(lambda a: reads.append(a) or a, numbers(3)))
    assert list(kept()) == list(kept()) == [0, 1, 2] == reads


def test_readers_read_ahead_on_threads_in_order() -> None:
    read = threading.Event()

    def samples() -> object:
        yield 0
        yield 1
        read.set()
        yield 2

    ahead = reader.buffered(samples, 3)()
    assert next(ahead) == 0
    assert read.wait(3600)
    assert list(ahead) == [1, 2]
    squares = reader.xmap_readers(lambda a: a * a, lambda: iter(range(20)), 3, 4)
    assert list(squares()) == [a * a for a in range(20)]
    assert next(squares()) == 0  # and what was read ahead is dropped
    with pytest.raises(ZeroDivisionError):
        list(reader.xmap_readers(lambda a: 1 // a, lambda: iter([1, 0]), 2, 2)())
    with pytest.raises(ValueError, match="at least one thread"):
        reader.xmap_readers(abs, samples, 0, 1)


def test_layer_helper_makes_parameters_and_no_operations() -> None:
    helper = LayerHelper("tower", input=paddle.zeros([2], "float64"), bias_attr=False)
    weight = helper.create_parameter(helper.param_attr, [2, 3], helper.input_dtype())
    assert weight.shape == [2, 3]
    assert weight.dtype == paddle.float64
    assert weight.name.startswith("tower_")
    assert helper.bias_attr is None
    assert helper.create_parameter(False, [2]) is None
    with pytest.raises(NotImplementedError, match=r"append_op\('relu'"):
        helper.append_op(type="relu", inputs={}, outputs={})


def test_places_of_flops_and_endpoints() -> None:
    from argosy.hapi.dynamic_flops import dynamic_flops
    from argosy.utils.download import _get_unique_endpoints

    assert dynamic_flops is paddle.flops
    assert _get_unique_endpoints(["b:1", "a:2", "a:1"]) == {"a:1", "b:1"}


def test_a_value_with_axes_is_assigned_to_one_place() -> None:
    """``x[0] = ones([1])``: numpy refuses it from 2.4 on; PaddleSeg's losses do it."""
    x = paddle.zeros([2, 2])
    x[0, 1] = paddle.to_tensor([3.0])
    x[1, 0] = np.array([[4.0]], np.float32)
    assert x.tolist() == [[0.0, 3.0], [4.0, 0.0]]
    value = paddle.to_tensor([5.0], stop_gradient=False)
    y = x * 1.0
    y[1, 1] = value
    (y * 2.0).sum().backward()
    assert y.tolist() == [[0.0, 3.0], [4.0, 5.0]]
    assert value.grad.tolist() == [2.0]
