"""Looking for NaN, counting types, and what auto_cast says about itself."""

import csv

import numpy as np
import pytest

import argosy as paddle
from argosy.amp import debugging
from argosy.amp.records import record_of

NAN = [1.0, float("nan"), float("inf"), 0.0]


def test_check_numerics_counts_and_stops(capsys):
    """NaN, infinite and zero elements are counted; figures and lines are the wheel's."""
    x = paddle.to_tensor(NAN)
    counts, figures = debugging.check_numerics(x, "op", "x", debugging.DebugMode.CHECK_NAN_INF)
    assert counts.tolist() == [1, 1, 1]
    np.testing.assert_array_equal(figures.numpy(), np.array([np.inf, 0, np.nan], np.float32))
    assert capsys.readouterr().out == (
        "[PRECISION] [ERROR] in [device=cpu, op=op, tensor=x, dtype=fp32], numel=4, num_nan=1, num_inf=1, num_zero=1, "
        "max=inf, min=0.000000e+00, mean=nan\n"
    )
    with pytest.raises(RuntimeError, match="op: x holds 1 NaN and 1 infinite"):
        debugging.check_numerics(x, "op", "x")
    capsys.readouterr()
    assert debugging.check_numerics(paddle.ones([2]), "op", "x")[1].tolist() == [1, 1, 1]
    assert capsys.readouterr().out == ""


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
    """The table has a line for each operator with calls by type, as the wheel's."""
    with debugging.collect_operator_stats(), paddle.amp.auto_cast(dtype="bfloat16"):
        paddle.ones([2, 2]) @ paddle.ones([2, 2])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == (
        "<--------------- Op Name ---------------- | -- FP16 Calls --- | -- BF16 Calls --- | --- FP32 Calls--- | "
        "-- Other Calls -->"
    )
    line = next(one for one in lines if "matmul" in one)
    assert line == f"  {'matmul':<40}|  {0:<17}|  {1:<17}|  {0:<17}|  {0:<17}"


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
    assert paddle.get_autocast_dtype() == "float16"
    with paddle.autocast(dtype="bfloat16"):
        assert paddle.amp.is_autocast_enabled()
        assert paddle.get_autocast_cpu_dtype() == paddle.amp.get_autocast_gpu_dtype() == "bfloat16"
    with paddle.amp.auto_cast(level="O0"):
        assert not paddle.is_autocast_enabled()


def _run(mode, folder=None):
    """A step whose second product float16 could not hold, and whose quotient is NaN in one place."""
    config = debugging.TensorCheckerConfig(True, mode, output_dir=None if folder is None else str(folder))
    debugging.enable_tensor_checker(config)
    try:
        x = paddle.to_tensor([1.0, 0.0, 3.0])
        return [paddle.exp(x), x * 70000.0, paddle.divide(x, x)]
    finally:
        debugging.disable_tensor_checker()


@pytest.mark.parametrize(
    ("mode", "operators"),
    [
        ("CHECK_NAN_INF", ["divide"]),
        ("CHECK_ALL_FOR_OVERFLOW", ["multiply", "divide"]),
        ("CHECK_ALL", ["exp", "multiply", "divide"]),
    ],
)
def test_the_modes_tell_of_more_and_more(mode, operators, capsys):
    """In the lines that the wheel writes."""
    _run(debugging.DebugMode[mode])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("op=")[1].split(",")[0] for line in lines] == operators
    assert lines[-1] == (
        "[PRECISION] [ERROR] in [device=cpu, op=divide, tensor=, dtype=fp32], numel=3, num_nan=1, num_inf=0, "
        "num_zero=0, max=1.000000e+00, min=1.000000e+00, mean=nan"
    )
    if mode == "CHECK_ALL":
        assert lines[1] == (
            "[PRECISION] in [device=cpu, op=multiply, tensor=, dtype=fp32], numel=3, num_zero=1, max=2.100000e+05, "
            "min=0.000000e+00, mean=9.333333e+04"
        )


def test_two_runs_are_compared(tmp_path, capsys):
    """Logs go to a folder; the table has the tensors of one beside those of the other, and says which differ."""
    one, other = tmp_path / "float32", tmp_path / "half"
    _run(debugging.DebugMode.CHECK_ALL, one)
    assert capsys.readouterr().out == ""
    other.mkdir()
    changed = (one / "worker_cpu").read_text().replace("fp32", "fp16").replace("2.008554e+01", "2.500000e+01")
    (other / "worker_cpu").write_text(changed + changed.splitlines()[0].replace("op=exp", "op=cast") + "\n")
    table = tmp_path / "compared.csv"
    debugging.compare_accuracy(str(one), str(other), str(table))
    rows = {row["op_type"]: row for row in csv.DictReader(table.read_text().splitlines())}
    assert {op: row["normal"] for op, row in rows.items()} == {
        "exp": "no", "multiply": "no", "divide": "no", "cast": "yes",
    }  # fmt: skip
    assert float(rows["exp"]["second / first max"]) == pytest.approx(25 / 20.08554)
    assert (rows["exp"]["first dtype"], rows["exp"]["second dtype"]) == ("fp32", "fp16")
    assert (rows["cast"]["first max"], rows["cast"]["second / first max"]) == ("", "")


def test_a_scaled_loss_is_allowed_for(tmp_path):
    """Extrema that are as many times as large as the loss was scaled are no difference."""
    for name, factor in (("one", 1), ("other", 128)):
        (tmp_path / name).mkdir()
        line = record_of("matmul_grad", "float32", np.array([1.0, 2.0]) * factor).line()
        (tmp_path / name / "worker_cpu").write_text(line + "\n")
    for scale, normal in ((1, "no"), (128, "yes")):
        table = tmp_path / "compared.csv"
        debugging.compare_accuracy(str(tmp_path / "one"), str(tmp_path / "other"), str(table), scale)
        assert next(csv.DictReader(table.read_text().splitlines()))["normal"] == normal


def test_logs_that_are_none_are_named(tmp_path):
    arguments = (str(tmp_path), str(tmp_path), str(tmp_path / "compared.csv"))
    with pytest.raises(ValueError, match="holds no logs"):
        debugging.compare_accuracy(*arguments)
    (tmp_path / "worker_cpu").write_text("[PRECISION] in [device=cpu, op=exp, dtype=fp32], numel=x\n")
    with pytest.raises(ValueError, match="a line of a log of tensors"):
        debugging.compare_accuracy(*arguments)
    with pytest.raises(ValueError, match=r"should end in \.csv"):
        debugging.compare_accuracy(str(tmp_path), str(tmp_path), "compared.xlsx")
    with pytest.raises(ValueError, match="'dump_all_tensors' must be False"):
        debugging.compare_accuracy(*arguments, dump_all_tensors=True)
    with pytest.raises(ValueError, match="should be a DebugMode"):
        debugging.TensorCheckerConfig(True, 3)


def test_the_flag_of_paddle_switches_the_checker(capsys):
    """FLAGS_check_nan_inf stops at the operator that made the first NaN or infinity; a level is a mode that prints."""
    x = paddle.to_tensor([0.0, 1.0])
    try:
        paddle.set_flags({"FLAGS_check_nan_inf": 1})
        assert paddle.get_flags("FLAGS_check_nan_inf") == {"FLAGS_check_nan_inf": True}
        with pytest.raises(RuntimeError, match="log: result 0 holds 0 NaN and 1 infinite"):
            paddle.exp(paddle.log(x))
        paddle.set_flags({"FLAGS_check_nan_inf_level": 3})
        assert paddle.divide(x, x)[1].item() == 1
        assert "op=divide, tensor=, dtype=fp32], numel=2, num_nan=1" in capsys.readouterr().out
        paddle.exp(x)
        assert "[PRECISION] in [device=cpu, op=exp" in capsys.readouterr().out
    finally:
        paddle.set_flags({"FLAGS_check_nan_inf": False, "FLAGS_check_nan_inf_level": 0})
    assert paddle.log(x).numpy().tolist() == [-np.inf, 0]
