"""Importing argosy costs next to nothing and loads no part before it is used."""

import subprocess
import sys

import pytest


def _modules_after(code: str) -> set[str]:
    listing = subprocess.run(
        [sys.executable, "-c", code + "\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(listing.stdout.split())


def test_import_loads_no_package_behind_the_names():
    """`import argosy` loads only what finds its names: not their table, no numpy, no operators, no compiler."""
    loaded = _modules_after("import argosy")
    ours = {name for name in loaded if name.partition(".")[0].startswith("argosy")}
    assert ours == {"argosy", "argosy.__about__", "argosy.api"}
    assert not loaded & {"numpy", "llvmlite", "inspect", "dataclasses", "typing"}


def test_first_operator_loads_neither_compiler_nor_passes():
    """An eager addition needs no compiler, no passes, no inference."""
    loaded = _modules_after("import argosy as paddle; (paddle.to_tensor([1.0]) + 1).numpy()")
    packages = {name.partition(".")[0] for name in loaded}
    assert not packages & {
        "llvmlite",
        "argosy_cinn",
        "argosy_infer",
        "argosy_autoparallel",
        "mpi4py",
        "rich",
        "matplotlib",
    }
    assert not any(name.startswith("argosy_pir.passes") for name in loaded)


def test_unknown_names_raise_attribute_error():
    """A name that exists nowhere says so."""
    import argosy

    with pytest.raises(AttributeError, match=r"no package of argosy provides argosy\.no_such_thing"):
        _ = argosy.no_such_thing
    with pytest.raises(AttributeError, match=r"argosy\.nn\.NoSuchLayer"):
        _ = argosy.nn.NoSuchLayer


def test_missing_sibling_names_the_installation():
    """When a sibling package is missing the error names the command that installs it."""
    code = (
        "import sys; sys.modules['argosy_autograd'] = None\n"
        "import argosy\n"
        "try: argosy.to_tensor\n"
        "except ImportError as e: print(e)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install argosy-autograd" in shown


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("argosy", ("matmul", "add_", "absolute", "to_tensor", "Tensor", "float32", "pi")),
        ("argosy.nn", ("Linear", "Layer", "MaxPool2D", "CrossEntropyLoss")),
        ("argosy.nn.functional", ("relu", "relu_", "one_hot", "batch_norm", "conv2d", "logsigmoid")),
        ("argosy.linalg", ("svd", "norm")),
        ("argosy.tensor", ("matmul", "add_")),
        ("argosy.vision.models", ("resnet18",)),
    ],
)
def test_stars_and_completion_know_what_is_found_by_name(module, names):
    """``from module import *`` gives functions, classes and constants, no modules; ``dir`` lists them, too."""
    found = {}
    exec(f"from {module} import *", found)
    assert set(names) <= found.keys()
    assert not {name for name, value in found.items() if type(value) is type(sys)}
    assert set(names) <= set(dir(sys.modules[module]))


def test_completion_of_a_tensor():
    """Methods that no one used yet are listed: operators with a tensor first, attributes, what gradients add."""
    import argosy

    listed = set(dir(argosy.ones([2])))
    assert {"matmul", "add_", "astype", "backward", "reshape", "stft", "T"} <= listed
    assert not listed & {"conv2d", "zeros", "arange"}
