"""``Strategy``: the snippets of the documentation, and fields that do not exist or are not built."""

import pytest

from argosy.distributed import Strategy


def test_published_snippets_run():
    """Fields are set as Paddle's documentation sets them, and read back."""
    strategy = Strategy()
    strategy.fused_passes.enable = True
    strategy.fused_passes.gemm_epilogue = True
    strategy.pipeline.enable = True
    strategy.pipeline.schedule_mode = "1F1B"
    strategy.pipeline.vpp_degree = 2
    assert strategy.fused_passes.to_dict()["gemm_epilogue"] is True
    assert (strategy.pipeline.schedule_mode, strategy.pipeline.vpp_degree) == ("1F1B", 2)
    strategy.pipeline.schedule_mode = "interleaved"
    strategy.pipeline.accumulate_steps, strategy.pipeline.micro_batch_size = 4, 2
    assert (strategy.pipeline.schedule_mode, strategy.pipeline.accumulate_steps) == ("interleaved", 4)
    strategy.pipeline.schedule_mode = "1F1B"
    assert Strategy().pipeline.vpp_degree == 1
    assert "schedule_mode='1F1B'" in repr(strategy)


def test_a_dictionary_configures_parts():
    """``Strategy(config)`` sets fields of parts and of the whole."""
    strategy = Strategy({"sharding": {"enable": True, "stage": 2}, "seed": 3, "amp": {"init_loss_scaling": 2}})
    assert (strategy.sharding.stage, strategy.seed, strategy.amp.init_loss_scaling) == (2, 3, 2.0)


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        ({"shading": {}}, AttributeError, "no field 'shading'"),
        ({"sharding": {"stages": 1}}, AttributeError, "Sharding has no field 'stages'"),
        ({"sharding": {"stage": 4}}, ValueError, "Sharding.stage is one of"),
        ({"pipeline": {"vpp_degree": "2"}}, TypeError, "Pipeline.vpp_degree takes int"),
        ([], ValueError, "takes a dictionary"),
    ],
)
def test_what_does_not_fit_is_refused(config, error, message):
    """Unknown names, wrong types and values raise at once, naming the field."""
    with pytest.raises(error, match=message):
        Strategy(config)


@pytest.mark.parametrize("part", ["sharding", "gradient_merge", "pipeline", "amp", "recompute"])
def test_parts_that_are_not_built_raise_when_used(part):
    """A strategy with such a part enabled is refused by name when a program is to be made with it."""
    with pytest.raises(NotImplementedError, match=rf"Strategy\.{part}\.enable"):
        Strategy({part: {"enable": True}}).check_implemented()
    Strategy({"fused_passes": {"enable": True}}).check_implemented()
