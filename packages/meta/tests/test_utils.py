"""Helpers of user code, names by which older scripts know things, and questions about devices."""

import hashlib
import sys

import numpy as np
import pytest

import argosy as paddle
from argosy import utils
from argosy_hwadapt import DeviceNotFound


def test_modules_are_imported_or_asked_for():
    assert utils.try_import("json").dumps([1]) == "[1]"
    with pytest.raises(ImportError, match="python -m pip install no_such_module"):
        utils.try_import("no_such_module.part")
    with pytest.raises(ImportError, match="take it from there"):
        utils.try_import("no_such_module", "take it from there")


def test_versions_are_those_of_the_interface():
    utils.require_version("2.0")
    utils.require_version("3.0.0", paddle.version.full_version)
    with pytest.raises(RuntimeError, match=r"at least 99\.0"):
        utils.require_version("99.0")
    with pytest.raises(RuntimeError, match=r"at most 2\.6\.1"):
        utils.require_version("2.0", "2.6.1")
    with pytest.raises(TypeError, match="'min_version' must be a str"):
        utils.require_version(3)
    with pytest.raises(ValueError, match="numbers with dots"):
        utils.require_version("3.x")


def test_the_version_is_shown(capsys):
    paddle.version.show()
    assert capsys.readouterr().out.splitlines()[:2] == ["full_version: 3.3.1", f"commit: argosy {paddle.__version__}"]
    assert paddle.version.cuda() == paddle.version.cudnn() == paddle.version.xpu() == "False"
    assert paddle.version.nccl() == "0"


def test_the_installation_is_checked(capsys, monkeypatch):
    utils.run_check()
    assert "[ok] compiled training equals eager training" in capsys.readouterr().out
    monkeypatch.setattr("argosy.cli.check.run_check", lambda backend: 1)
    with pytest.raises(RuntimeError, match="does not compute right"):
        utils.run_check()


def test_what_goes_away_says_so():
    @utils.deprecated("paddle.new", since="3.0", reason="it was slow")
    def old(x):
        """Doubles."""
        return 2 * x

    with pytest.warns(DeprecationWarning, match=r"old is deprecated since 3.0; use paddle.new \(it was slow\)"):
        assert old(2) == 4
    assert "Doubles." in old.__doc__

    @utils.deprecated(level=2)
    def gone():
        pass

    with pytest.raises(RuntimeError, match="gone is deprecated"):
        gone()


def test_names_are_unique_within_their_guard():
    names = utils.unique_name
    first = names.generate("fc")
    with names.guard():
        assert [names.generate("fc") for _ in range(2)] == ["fc_0", "fc_1"]
        with names.guard("inner/"):
            assert names.generate("fc") == "inner/fc_0"
        assert names.generate("fc") == "fc_2"
        assert paddle.nn.Linear(1, 1).weight.name == "linear_0.w_0"
    assert int(names.generate("fc").rpartition("_")[2]) == int(first.rpartition("_")[2]) + 1
    before = names.switch()
    assert names.generate("fc") == "fc_0"
    names.switch(before)
    with pytest.raises(TypeError, match="new_generator must be a str"), names.guard(3):
        pass


def test_tensors_travel_as_capsules():
    x = paddle.to_tensor([1.0, 2.0])
    assert paddle.from_dlpack(paddle.to_dlpack(x)).tolist() == [1.0, 2.0]
    shared = paddle.from_dlpack(x)
    shared[0] = 5.0
    assert x.tolist() == [5.0, 2.0]
    z = utils.dlpack.from_dlpack(np.array([1.0, 2.0]), copy=True)
    assert z.tolist() == [1.0, 2.0]
    with pytest.raises(DeviceNotFound, match="cuda"):
        paddle.from_dlpack(x, device="gpu:0")
    with pytest.raises(TypeError, match="must be a Tensor"):
        paddle.to_dlpack(np.ones(2))


def test_a_folder_offers_models(tmp_path):
    (tmp_path / "parts.py").write_text("SIZE = 3\n")
    (tmp_path / "hubconf.py").write_text(
        "import argosy as paddle\nfrom parts import SIZE\ndependencies = ['numpy']\n"
        "def small(outputs=2):\n    '''A small layer.'''\n    return paddle.nn.Linear(SIZE, outputs)\n"
        "def _hidden():\n    pass\n"
    )
    hub, folder = paddle.hub, str(tmp_path)
    assert hub.list(folder, source="local") == ["small"]
    assert hub.help(folder, "small", source="local") == "A small layer."
    assert hub.load(folder, "small", source="local", outputs=4).weight.shape == [3, 4]
    assert folder not in sys.path
    with pytest.raises(RuntimeError, match="no function 'large'"):
        hub.load(folder, "large", source="local")
    with pytest.raises(NotImplementedError, match="nothing is downloaded"):
        hub.load("owner/name", "small")
    with pytest.raises(ValueError, match="source should be"):
        hub.list(folder, source="elsewhere")
    with pytest.raises(FileNotFoundError, match=r"hubconf\.py"):
        hub.list(str(tmp_path / "none"), source="local")
    (tmp_path / "hubconf.py").write_text("dependencies = ['no_such_module']\n")
    with pytest.raises(RuntimeError, match="needs packages that are not there: no_such_module"):
        hub.list(folder, source="local")


def test_functions_under_incubate():
    I = paddle.incubate  # noqa: E741  (as in Paddle's documentation)
    x = paddle.to_tensor(np.random.default_rng(0).standard_normal((1, 2, 3, 3)))
    mask = paddle.to_tensor(np.where(np.tril(np.ones((3, 3))) > 0, 0.0, -np.inf))
    wanted = paddle.nn.functional.softmax(x + mask, -1).numpy()
    np.testing.assert_allclose(I.softmax_mask_fuse(x, mask).numpy(), wanted)
    np.testing.assert_allclose(I.softmax_mask_fuse_upper_triangle(x).numpy(), wanted)
    assert float(I.identity_loss(x, "sum")) == float(I.identity_loss(x, 0)) == float(x.sum())
    assert float(I.identity_loss(x, 1)) == float(x.mean())
    assert (I.identity_loss(x) == x).all()
    with pytest.raises(ValueError, match="reduction should be"):
        I.identity_loss(x, 3)


def test_graphs_under_incubate():
    I = paddle.incubate  # noqa: E741  (as above)
    rows = paddle.to_tensor([[1.0], [2.0], [4.0]])
    ends = paddle.to_tensor([0, 1, 2]), paddle.to_tensor([1, 1, 0])
    assert I.graph_send_recv(rows, *ends, "mean").tolist() == [[4.0], [1.5], [0.0]]
    assert I.segment_sum(rows, paddle.to_tensor([0, 0, 1])).tolist() == [[3.0], [4.0]]
    found = I.graph_sample_neighbors(paddle.to_tensor([2, 1]), paddle.to_tensor([0, 1, 2]), paddle.to_tensor([1]))
    assert [part.tolist() for part in found] == [[1], [1]]
    nodes, count = paddle.to_tensor([5, 7]), paddle.to_tensor([1, 1], "int32")
    assert [part.tolist() for part in I.graph_reindex(nodes, paddle.to_tensor([7, 9]), count)] == [
        [1, 2],
        [0, 1],
        [5, 7, 9],
    ]


def test_devices_are_asked_for():
    device = paddle.device
    assert device.device_count() == device.cuda.device_count() == 0
    assert not device.is_available()
    assert not device.cuda.is_available()
    assert device.get_cudnn_version() is None
    assert "cpu" in device.get_all_device_type()
    assert "cpu" not in device.get_all_custom_device_type()
    assert device.get_available_custom_device() == [f"{n}:0" for n in device.get_all_custom_device_type()]
    device.synchronize()
    device.cuda.empty_cache()
    with device.device_guard("cpu"):
        assert paddle.ones([1]).place.is_cpu_place()
    with pytest.raises(DeviceNotFound, match="no device plug-in is named 'cuda'"):
        device.synchronize("gpu:0")
    with pytest.raises(ValueError, match=r"memory_allocated\(\): there is no CUDA device"):
        device.cuda.memory_allocated()


@pytest.mark.parametrize("name", ["current_stream", "get_device_name", "max_memory_allocated", "memory_reserved"])
def test_what_needs_an_accelerator_says_so(name):
    for module in (paddle.device, paddle.device.cuda):
        with pytest.raises(ValueError, match=rf"{name}\(\): there is no"):
            getattr(module, name)()


def test_streams_and_places_of_other_devices_are_refused():
    device = paddle.device
    for make in (device.Stream, device.Event, device.cuda.Stream, device.IPUPlace, lambda: device.XPUPlace(0)):
        with pytest.raises(ValueError, match="there is no"):
            make()
    with pytest.raises(RuntimeError, match="no CUDA device"):
        device.ipc_collect()
    with pytest.raises(TypeError, match="should be a Stream or None, got int"):
        device.stream_guard(3)
    with device.stream_guard(None), device.StreamContext():
        assert not device.is_current_stream_capturing()
    device.empty_cache()
    assert device.is_bf16_supported()


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("FloatTensor", "float32"), ("DoubleTensor", "float64"), ("HalfTensor", "float16"), ("BFloat16Tensor", "bfloat16"),
     ("BoolTensor", "bool"), ("ByteTensor", "uint8"), ("CharTensor", "int8"), ("ShortTensor", "int16"),
     ("IntTensor", "int32"), ("LongTensor", "int64")],
)  # fmt: skip
def test_tensors_by_the_name_of_their_dtype(name, dtype):
    make = getattr(paddle.device, name)
    values = make([[1, 0]])
    assert values.dtype == getattr(paddle, dtype)
    assert values.stop_gradient
    assert values.astype("int64").tolist() == [[1, 0]]
    assert (list(make(2, 3).shape), list(make().shape), list(make(4).shape)) == ([2, 3], [0], [4])
    with pytest.raises(TypeError, match="takes sizes or one list of values"):
        make(2, "3")


def test_the_generator_by_its_device():
    device = paddle.device
    device.manual_seed(5)
    state = device.get_rng_state()
    first = paddle.rand([3]).tolist()
    device.set_rng_state(state)
    assert paddle.rand([3]).tolist() == first
    paddle.seed(5)
    assert paddle.rand([3]).tolist() == first
    with pytest.raises(ValueError, match=r"shape \[2\]"):
        device.set_rng_state(paddle.ones([3]))


def test_a_state_is_loaded_from_where_its_address_would_put_it(tmp_path, monkeypatch):
    """By name, by another name, as arrays; what is not there, or has another hash, is refused."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "paddle" / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    paddle.save({"w": paddle.ones([2])}, str(folder / "net.pdparams"))
    digest = hashlib.sha256((folder / "net.pdparams").read_bytes()).hexdigest()
    (folder / f"net-{digest[:8]}.pdparams").write_bytes((folder / "net.pdparams").read_bytes())
    load, address = paddle.hub.load_state_dict_from_url, "https://example.org/models/net.pdparams?x=1"
    assert load(address)["w"].tolist() == [1.0, 1.0]
    assert type(load(address, map_location="numpy")["w"]) is np.ndarray
    assert load("https://example.org/a", str(folder), file_name="net.pdparams")["w"].shape == [2]
    assert load(f"https://example.org/net-{digest[:8]}.pdparams", check_hash=True)["w"].shape == [2]
    assert load(address, check_hash=digest[:6])["w"].shape == [2]
    with pytest.raises(ValueError, match="SHA-256"):
        load(address, check_hash="0000" if digest[:4] != "0000" else "1111")
    with pytest.raises(FileNotFoundError, match="downloads nothing"):
        load("https://example.org/other.pdparams")
    with pytest.raises(ValueError, match="'gpu'"):
        load(address, map_location="gpu")
