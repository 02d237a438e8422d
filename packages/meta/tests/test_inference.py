"""Models are served as users of Paddle Inference write it."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import argosy as paddle
from argosy import inference
from argosy_hwadapt import DeviceNotFound
from argosy_infer.errors import InputError, ProgramFileError

FILES = Path(__file__).parent / "paddle_programs"


def _predictor(*files):
    config = inference.Config(*(str(file) for file in files))
    config.disable_glog_info()
    config.enable_memory_optim()
    config.switch_ir_optim(True)
    config.switch_use_feed_fetch_ops(False)
    return inference.create_predictor(config)


def _served(predictor, x):
    (name,) = predictor.get_input_names()
    handle = predictor.get_input_handle(name)
    handle.reshape(list(x.shape))
    handle.copy_from_cpu(x)
    assert predictor.run() is None
    return predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()


@pytest.mark.parametrize("name", ["mlp", "cnn", "transformer", "lstm"])
def test_programs_of_paddle_are_served(name):
    """Files of Paddle 3 give Paddle's outputs, through handles."""
    recorded = np.load(FILES / "outputs.npz")
    predictor = _predictor(FILES / f"{name}.json", FILES / f"{name}.pdiparams")
    assert predictor.get_output_names() == ["fetch_name_0"]
    np.testing.assert_allclose(_served(predictor, recorded[f"{name}_x"]), recorded[f"{name}_y"], rtol=1e-4, atol=1e-6)


def test_weights_may_have_another_name(tmp_path):
    """The two files need not share a name."""
    shutil.copy(FILES / "mlp.json", tmp_path / "program.json")
    shutil.copy(FILES / "mlp.pdiparams", tmp_path / "weights")
    x = np.load(FILES / "outputs.npz")["mlp_x"]
    expected = _served(_predictor(FILES / "mlp.json", FILES / "mlp.pdiparams"), x)
    np.testing.assert_array_equal(_served(_predictor(tmp_path / "program.json", tmp_path / "weights"), x), expected)


def test_programs_are_served_on_devices():
    """Clones stay there; a device that is not there is refused when it is asked for."""
    recorded = np.load(FILES / "outputs.npz")
    config = inference.Config(str(FILES / "mlp.json"), str(FILES / "mlp.pdiparams"))
    config.enable_custom_device("virtual", 1)
    assert (config.use_custom_device(), config.custom_device_type(), config.custom_device_id()) == (True, "virtual", 1)
    predictor = inference.create_predictor(config)
    for each in (predictor, predictor.clone()):
        assert str(each._program.device) == "virtual:1"
        np.testing.assert_allclose(_served(each, recorded["mlp_x"]), recorded["mlp_y"], rtol=1e-4, atol=1e-6)
    with pytest.raises(DeviceNotFound, match="no device plug-in is named 'nothing'"):
        config.enable_custom_device("nothing")
    config.disable_gpu()
    assert not config.use_custom_device()


@pytest.fixture
def exported(tmp_path):
    layer = paddle.nn.Sequential(paddle.nn.Linear(4, 3), paddle.nn.ReLU())
    layer.eval()
    paddle.jit.save(layer, str(tmp_path / "model"), [paddle.static.InputSpec([None, 4], "float32", "x")])
    return layer, tmp_path


@pytest.mark.parametrize(
    "files", [("model.json", "model.pdiparams"), ("model.pdmodel", "model.pdiparams"), ("", "model"), ("",)]
)
def test_own_exports_are_found_under_paddles_names(exported, files):
    """What jit.save wrote is served by scripts that name Paddle's files, a folder and a prefix, or a folder."""
    layer, folder = exported
    config = inference.Config(*(x if x == "model" and i else str(folder / x) for i, x in enumerate(files)))
    x = np.arange(8, dtype="float32").reshape(2, 4)
    found = _served(inference.create_predictor(config), x)
    np.testing.assert_allclose(found, layer(paddle.to_tensor(x)).numpy(), rtol=1e-6)


def test_tensors_in_order_give_tensors(exported):
    """run() of tensors returns tensors; a clone and a pool share the weights and not the handles."""
    layer, folder = exported
    predictor = _predictor(folder / "model.json", folder / "model.pdiparams")
    x = paddle.ones([2, 4])
    expected = layer(x).numpy()
    (y,) = predictor.run([x])
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-6)
    clone = predictor.clone()
    with pytest.raises(RuntimeError, match="no value yet"):
        clone.get_output_handle("fetch_name_0").copy_to_cpu()
    np.testing.assert_allclose(clone.run([x])[0].numpy(), expected, rtol=1e-6)
    pool = inference.PredictorPool(inference.Config(str(folder), "model"), 2)
    np.testing.assert_allclose(pool.retrieve(1).run([x])[0].numpy(), expected, rtol=1e-6)


def test_handles_tell_shape_and_dtype_and_keep_copies(exported):
    """A handle copies what it is given, shares memory where asked, and refuses what is no array."""
    predictor = _predictor(exported[1] / "model.json", exported[1] / "model.pdiparams")
    handle = predictor.get_input_handle("x")
    x = np.ones((2, 4), "float32")
    handle.copy_from_cpu(x)
    x[:] = 7.0
    assert (handle.shape(), handle.type(), handle.lod()) == ([2, 4], inference.DataType.FLOAT32, [])
    assert (handle.copy_to_cpu() == 1.0).all()
    shared = paddle.ones([1, 4])
    handle.share_external_data(shared)
    shared.fill_(3.0)
    assert (handle.copy_to_cpu() == 3.0).all()
    with pytest.raises(TypeError, match="only support numpy ndarray"):
        handle.copy_from_cpu([1.0])
    with pytest.raises(TypeError, match="only support Tensor"):
        handle.share_external_data(x)
    handle.copy_from_cpu(np.ones((2, 5), "float32"))
    with pytest.raises(InputError, match="shape"):
        predictor.run()
    with pytest.raises(RuntimeError, match="named y is not found"):
        predictor.get_input_handle("y")


def test_files_that_are_missing_or_old_are_named(tmp_path):
    """A missing file, a folder of none, and Paddle 2's format say what was looked for."""
    with pytest.raises(RuntimeError, match=r"cannot open file .*none\.json"):
        _predictor(tmp_path / "none.json", tmp_path / "none.pdiparams")
    with pytest.raises(RuntimeError, match="one program"):
        _predictor(tmp_path)
    (tmp_path / "old.pdmodel").write_bytes(b"")
    with pytest.raises(NotImplementedError, match=r"old\.pdmodel"):
        _predictor(tmp_path / "old.pdmodel", tmp_path / "old.pdiparams")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(ProgramFileError, match="bad"):
        _predictor(tmp_path / "bad.json", tmp_path / "bad.pdiparams")


def test_settings_answer_as_paddles_build_for_the_cpu():
    """Switches are kept, devices that are not here are refused or warned of."""
    config = inference.Config()
    assert (config.use_gpu(), config.mkldnn_enabled(), config.ir_optim()) == (False, True, True)
    assert config.cpu_math_library_num_threads() == 1
    config.set_cpu_math_library_num_threads(2)
    config.switch_ir_optim(False)
    config.disable_mkldnn()
    assert (config.cpu_math_library_num_threads(), config.ir_optim(), config.mkldnn_enabled()) == (2, False, False)
    with pytest.warns(UserWarning, match="no GPU"):
        config.enable_use_gpu(100, 0)
    assert not config.use_gpu()
    assert not config.tensorrt_engine_enabled()
    assert not config.use_xpu()
    config.pass_builder().delete_pass("fc_fuse_pass")
    for name in ("enable_tensorrt_engine", "enable_xpu", "enable_onnxruntime"):
        with pytest.raises(RuntimeError, match=name):
            getattr(config, name)()
    for name in ("enable_mkldnn_bfloat16", "enable_mkldnn_int8"):
        with pytest.raises(NotImplementedError, match=name):
            getattr(config, name)()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        config.nothing()
    assert inference.Config.Precision.Half is inference.PrecisionType.Half
    assert "prog_file" in config.summary()


def test_the_library_says_what_it_is():
    """Versions and sizes of dtypes."""
    assert inference.get_version().startswith("version: 3.")
    assert inference.get_num_bytes_of_data_type(inference.DataType.BFLOAT16) == 2
    assert inference.get_trt_compile_version() == inference.get_trt_runtime_version() == (0, 0, 0)
    kinds = (inference.PrecisionType.Half, inference.PlaceType.CPU)
    with pytest.raises(NotImplementedError, match="auto_cast"):
        inference.convert_to_mixed_precision("a", "b", "c", "d", *kinds)
    with pytest.raises(NotImplementedError, match="XPU"):
        inference.XpuConfig()
