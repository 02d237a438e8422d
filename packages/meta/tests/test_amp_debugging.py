"""Looking for NaN, counting types, and what auto_cast says about itself."""

import numpy as np
import pytest

import argosy as paddle
from argosy.amp import debugging

NAN = [1.0, float("nan"), float("inf"), 0.0]


def test_check_numerics_counts_and_stops():
    """NaN, infinite and zero elements are counted; the figures are those of the finite ones."""
    x = paddle.to_tensor(NAN)
    counts, figures = debugging.check_numerics(x, "op", "x", debugging.DebugMode.CHECK_NAN_INF)
    assert counts.tolist() == [1, 1, 1]
    assert figures.tolist() == [1.0, 0.0, 0.5]
    with pytest.raises(RuntimeError, match="op: x holds 1 NaN and 1 infinite"):
        debugging.check_numerics(x, "op", "x")
    debugging.check_numerics(paddle.ones([2]), "op", "x")


def test_the_checker_names_the_operator_and_leaves_with_its_end():
    """An operator whose result is not finite raises while the checker is on, unless it is skipped."""
    x = paddle.to_tensor([0.0])
    debugging.enable_tensor_checker(debugging.TensorCheckerConfig(True, skipped_op_list=["log"]))
    try:
        paddle.log(x)
        with pytest.raises(RuntimeError, match="divide: result 0"):
            paddle.ones([1]) / x
    finally:
        debugging.disable_tensor_checker()
    assert np.isinf((paddle.ones([1]) / x).numpy()).all()


def test_only_chosen_steps_are_checked():
    """debug_step says which calls of enable_tensor_checker check."""
    config = debugging.TensorCheckerConfig(True, debug_step=[1, 2])
    assert [config.update_and_check_step_id() for _ in range(3)] == [False, True, False]
    with pytest.raises(ValueError, match="debug_step"):
        debugging.TensorCheckerConfig(True, debug_step=[2, 1])


def test_operators_are_counted_by_type(capsys):
    """The table has a line for each operator with calls by type."""
    with debugging.collect_operator_stats(), paddle.amp.auto_cast(dtype="bfloat16"):
        paddle.ones([2, 2]) @ paddle.ones([2, 2])
    line = next(one for one in capsys.readouterr().out.splitlines() if "matmul" in one)
    assert line.split()[1:] == ["0", "1", "0", "0"]


def test_a_layer_is_checked_at_both_ends():
    """The decorator of forward looks at what comes in and what goes out."""

    class Root(paddle.nn.Layer):
        @debugging.check_layer_numerics
        def forward(self, x):
            return paddle.sqrt(x)

    assert Root()(paddle.ones([1])).item() == 1.0
    with pytest.raises(RuntimeError, match="Root: output 0"):
        Root()(paddle.to_tensor([-1.0]))
    with pytest.raises(RuntimeError, match="Root: input 0"):
        Root()(paddle.to_tensor(NAN))


def test_auto_cast_says_whether_it_is_on_and_in_which_type():
    """Outside float16 is the default; inside the active type."""
    assert not paddle.is_autocast_enabled()
    assert paddle.get_autocast_dtype() == paddle.float16
    with paddle.autocast(dtype="bfloat16"):
        assert paddle.amp.is_autocast_enabled()
        assert paddle.get_autocast_cpu_dtype() == paddle.amp.get_autocast_gpu_dtype() == paddle.bfloat16
    with paddle.amp.auto_cast(level="O0"):
        assert not paddle.is_autocast_enabled()


def test_what_is_missing_says_so():
    """Dumps are not implemented."""
    with pytest.raises(NotImplementedError, match="output_dir"):
        debugging.TensorCheckerConfig(True, output_dir="/tmp")
    with pytest.raises(NotImplementedError, match="compare_accuracy"):
        debugging.compare_accuracy("a", "b", "c")


def test_the_flag_of_paddle_switches_the_checker(capsys):
    """FLAGS_check_nan_inf stops at the operator that made the first NaN or infinity; with a level, it prints."""
    x = paddle.to_tensor([0.0, 1.0])
    try:
        paddle.set_flags({"FLAGS_check_nan_inf": 1})
        assert paddle.get_flags("FLAGS_check_nan_inf") == {"FLAGS_check_nan_inf": True}
        with pytest.raises(RuntimeError, match="log: result 0 holds 0 NaN and 1 infinite"):
            paddle.exp(paddle.log(x))
        paddle.set_flags({"FLAGS_check_nan_inf_level": 3})
        assert paddle.divide(x, x)[1].item() == 1
        assert "divide: result 0 holds 1 NaN" in capsys.readouterr().out
    finally:
        paddle.set_flags({"FLAGS_check_nan_inf": False, "FLAGS_check_nan_inf_level": 0})
    assert paddle.log(x).numpy().tolist() == [-np.inf, 0]
