"""Level 2: building, loading and launching kernels."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np

from argosy_hwadapt.blob_cache import BlobCache
from argosy_hwadapt.device import Device, LaunchArgument
from argosy_hwadapt.errors import KernelBuildError, LaunchError, UnsupportedOperation
from argosy_hwadapt.kernel import TRANSIENT_FORMS, Scalar
from argosy_hwadapt.testing.kernels import DTYPES, KitKernel, kit_source, load_kernel, usable_form
from argosy_hwadapt.testing.reference_run import check_reference_run
from argosy_hwadapt.testing.suite import CheckSkipped, Subject, check, require, require_error


def _forms(subject: Subject) -> list[str]:
    """Return the device's forms that the kit can write; skip the check if there is none."""
    forms = []
    for form in subject.device.info.kernel_forms:
        try:
            kit_source(form, "axpby")
        except CheckSkipped:
            continue
        forms.append(form)
    return forms or [usable_form(subject.device)]


def _affine(device: Device, kernel: KitKernel, dtype: str, n: int, seed: int) -> None:
    x = (np.arange(n) % 100 + seed).astype(dtype)
    source, target = device.allocate(x.nbytes), device.allocate(x.nbytes)
    device.copy(source, x)
    a, b = Scalar(DTYPES[dtype], 3), Scalar(DTYPES[dtype], -7)
    kernel.launch((n,), [source, target, a, b, Scalar("q", n)])
    y = np.empty_like(x)
    device.copy(y, target)
    device.synchronize()
    require(np.array_equal(y, 3 * x - 7), f"3 x - 7 in {dtype} over {n} elements is wrong")


@check(2)
def computes_in_each_form_and_dtype(subject: Subject) -> None:
    """Every form that the kit can write computes every dtype that the device declares."""
    dtypes = [dtype for dtype in DTYPES if dtype in subject.device.info.dtypes]
    for form, dtype in product(_forms(subject), dtypes):
        _affine(subject.device, KitKernel(subject.device, form, f"affine_{dtype}"), dtype, 1000, 0)


@check(2)
def packs_scalars_by_exact_type(subject: Subject) -> None:
    """Scalars of mixed sizes arrive unharmed, whatever their alignment."""
    values = [("b", -128), ("H", 65535), ("i", -(2**31)), ("f", 0.5), ("B", 255), ("d", -1e300), ("q", 2**52)]
    for form in _forms(subject):
        out, buffer = np.zeros(len(values)), subject.device.allocate(8 * len(values))
        kernel = KitKernel(subject.device, form, "scalars")
        kernel.launch((1,), [buffer, *(Scalar(code, value) for code, value in values)])
        subject.device.copy(out, buffer)
        subject.device.synchronize()
        require(out.tolist() == [value for _, value in values], f"{form}: scalars arrived as {out.tolist()}")


@check(2)
def covers_the_grid(subject: Subject) -> None:
    """Each work-item of grid times block runs exactly once, at odd and three-dimensional extents."""
    widest = subject.device.info.max_block
    shapes = [((1,), (1,)), ((257,), (1,)), ((3, 5, 7), (1,)), ((3,), (min(64, widest),)), ((1,), (min(256, widest),))]
    for form in _forms(subject):
        kernel = KitKernel(subject.device, form, "count_items")
        for grid, block in shapes:
            items = int(np.prod(grid) * np.prod(block))
            counts, buffer = np.zeros(items + 5, np.int32), subject.device.allocate(4 * (items + 5))
            subject.device.memset(buffer, 0)
            kernel.launch(grid, [buffer, Scalar("q", items + 5)], block)
            subject.device.copy(counts, buffer)
            subject.device.synchronize()
            expected = [1] * items + [0] * 5
            require(counts.tolist() == expected, f"{form}: grid {grid} block {block} ran wrong items")


@check(2)
def passes_buffers_with_offsets(subject: Subject) -> None:
    """A (buffer, offset) argument starts at its offset."""
    device, x = subject.device, np.arange(16, dtype=np.float32)
    for form in _forms(subject):
        buffer, out = device.allocate(x.nbytes), np.empty_like(x)
        device.copy(buffer, x)
        arguments: list[LaunchArgument] = [(buffer, 32), (buffer, 4), Scalar("f", 1), Scalar("f", 100), Scalar("q", 3)]
        KitKernel(device, form, "affine_float32").launch((3,), arguments)
        device.copy(out, buffer)
        device.synchronize()
        require(out[:5].tolist() == [0, 108, 109, 110, 4], f"{form}: offsets gave {out.tolist()}")


@check(2)
def builds_the_same_blob_twice(subject: Subject) -> None:
    """Building is deterministic, so that blobs can be cached by their source."""
    for form in _forms(subject):
        source = kit_source(form, "relu")
        require(subject.device.build(form, source) == subject.device.build(form, source), f"{form}: blobs differ")


@check(2)
def runs_blobs_from_the_cache(subject: Subject) -> None:
    """A blob that went through the cache on disk computes the same."""
    for form in _forms(subject):
        if form in TRANSIENT_FORMS:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(2):
                kernel = KitKernel(subject.device, form, "affine_float32", BlobCache(folder))
                _affine(subject.device, kernel, "float32", 100, 1)


@check(2)
def serves_eight_threads(subject: Subject) -> None:
    """Threads that build, copy and launch at once do not disturb each other."""
    form = _forms(subject)[0]

    def work(seed: int) -> None:
        kernel = KitKernel(subject.device, form, "affine_float32")
        for turn in range(10):
            _affine(subject.device, kernel, "float32", 500 + seed, seed + turn)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


@check(2)
def orders_launches_and_copies(subject: Subject) -> None:
    """A chain of launches, each reading what the last one wrote, gives the last one's result."""
    device, form = subject.device, _forms(subject)[0]
    kernel, buffer, out = KitKernel(device, form, "affine_float32"), device.allocate(256), np.zeros(64, np.float32)
    device.copy(buffer, out)
    for _ in range(100):
        kernel.launch((64,), [buffer, buffer, Scalar("f", 1), Scalar("f", 1), Scalar("q", 64)])
    device.copy(out, buffer)
    device.synchronize()
    require(set(out) == {100}, f"a hundred increments gave {sorted(set(out))}")


@check(2)
def refuses_bad_sources(subject: Subject) -> None:
    """A source that does not build or load is a KernelBuildError, an unknown form is refused by name."""
    device = subject.device
    for form in device.info.kernel_forms:
        require_error(KernelBuildError, lambda f=form: device.load(device.build(f, b"\x00bad"), "none"), form)  # type: ignore[misc]
    require_error(UnsupportedOperation, lambda: device.build("no-such-form", b""), "an unknown form")


@check(2)
def refuses_what_does_not_fit(subject: Subject) -> None:
    """Launch limits are checked before the device sees the launch."""
    device, form = subject.device, _forms(subject)[0]
    kernel = load_kernel(device, kit_source(form, "relu"), form, "relu")
    require_error(LaunchError, lambda: device.launch(kernel, (1,), (device.info.max_block + 1,)), "block too large")
    require_error(LaunchError, lambda: device.launch(kernel, (0,)), "empty grid")
    shared = device.info.shared_bytes + 1
    require_error(LaunchError, lambda: device.launch(kernel, (1,), shared=shared), "too much shared memory")


@check(2)
def trains_the_reference_network(subject: Subject) -> None:
    """A two-layer perceptron trained on the device has numpy's losses within 1e-4."""
    check_reference_run(subject.name, subject.runtime)
