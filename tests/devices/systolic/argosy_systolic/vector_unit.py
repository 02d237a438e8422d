"""The simulated units: a vector unit, which computes elements at all places of a grid at once, and a matrix unit of
16 x 16 cells, whose weights stay while activations move to the right and sums down, a cell a cycle."""

import math

import numpy as np

SIZE = 16
_NAMES = """
abs acos=arccos acosh=arccosh add asin=arcsin asinh=arcsinh atan=arctan atan2=arctan2 atanh=arctanh bitwise_and
bitwise_not=invert bitwise_or bitwise_xor ceil cos cosh div=divide eq=equal exp expm1 floor floor_div=floor_divide
floor_mod=mod ge=greater_equal gt=greater is_finite=isfinite is_inf=isinf is_nan=isnan le=less_equal log log1p
logical_and logical_not logical_or logical_xor lt=less maximum minimum mul=multiply ne=not_equal neg=negative pow=power
rem=fmod round=rint select=where shift_left=left_shift shift_right=right_shift sign sin sinh sqrt sub=subtract tan tanh
trunc
""".split()
#: What the vector unit does with elements; results are converted to the instruction's dtype.
OPERATIONS = {name.partition("=")[0]: getattr(np, name.rpartition("=")[2]) for name in _NAMES}
OPERATIONS |= {
    "cast": lambda x: x, "bitcast": None, "logistic": lambda x: 1 / (1 + np.exp(-x)), "rsqrt": lambda x: 1 / np.sqrt(x),
    **{name: np.vectorize(getattr(math, name), otypes=[np.float64]) for name in ("erf", "erfc")},
}  # fmt: skip
_FOLDS = {"sum": np.add, "logsumexp": np.logaddexp, "prod": np.multiply, "max": np.maximum, "min": np.minimum,
          "and": np.logical_and, "or": np.logical_or}  # fmt: skip


def execute(code, buffers):
    """Run a kernel's instructions on the bytes of its buffers."""
    registers, grid = [], ()
    with np.errstate(all="ignore"):
        for operation, *operands in code:
            if operation == "GRID":
                grid = tuple(operands[0])
            registers.append(_UNITS[operation](registers, grid, buffers, *operands))


def _typed(buffer, dtype):
    return buffer[: len(buffer) - len(buffer) % np.dtype(dtype).itemsize].view(dtype)


def _affine(r, grid, buffers, constant, terms):
    return sum((c * r[x] for c, x in terms), np.full((1,) * len(grid), constant))


def _load(r, grid, buffers, dtype, buffer, place, guards):
    """Elements, zero where a guard does not hold."""
    exists = math.prod([r[guard] for guard in guards], start=True)
    read = _typed(buffers[buffer], dtype)[np.where(exists, r[place], 0)]
    return np.where(exists, read, np.zeros((), dtype))


def _alu(r, grid, buffers, name, dtype, arguments):
    values = [r[x] for x in arguments]
    if name == "bitcast":
        return np.ascontiguousarray(values[0]).view(dtype)
    return np.asarray(OPERATIONS[name](*values)).astype(dtype)


def _reduce(r, grid, buffers, dtype, kind, body, axes, running):
    whole, fold = np.broadcast_to(r[body], grid), _FOLDS[kind]
    if not running:
        return fold.reduce(whole, axis=tuple(axes), keepdims=True, dtype=dtype)
    merged = whole.reshape(*grid[: axes[0]], math.prod(grid[i] for i in axes), *grid[axes[-1] + 1 :])
    return fold.accumulate(merged, axis=axes[0], dtype=dtype).reshape(grid)


def _store(r, grid, buffers, dtype, buffer, place, value, combine, condition):
    chosen = np.True_ if condition is None else r[condition]
    place, value, chosen = np.broadcast_arrays(r[place], r[value], chosen)
    memory, place, value = _typed(buffers[buffer], dtype), place[chosen], value[chosen].astype(dtype)
    if combine:
        _FOLDS[combine].at(memory, place, value)
    else:
        memory[place] = value


def _philox(r, grid, buffers, index, counter, seed, offset):
    """Words of Philox 4x32-10 (Salmon et al., 2011)."""
    place, low = r[index].astype(np.uint64), np.uint64(0xFFFFFFFF)
    key, draw = (int(np.ravel(r[x])[0]) % 2**64 for x in (seed, offset))
    draw, half, keys = (draw + counter) % 2**64, np.uint64(32), [key % 2**32, key >> 32]
    c = [(place >> np.uint64(2)) & low, place >> np.uint64(34), np.uint64(draw % 2**32), np.uint64(draw >> 32)]
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> half) ^ c[1] ^ np.uint64(keys[0]), b & low, (a >> half) ^ c[3] ^ np.uint64(keys[1]), a & low]
        keys = [(k + w) % 2**32 for k, w in zip(keys, (0x9E3779B9, 0xBB67AE85), strict=True)]
    return np.choose((place & np.uint64(3)).astype(int), np.broadcast_arrays(*c)).astype(np.uint32)


def _check(r, grid, buffers, site, count):
    first, value, noted = (_typed(buffer, np.int64) for buffer in buffers)
    if first[0] < count and not noted[0]:
        noted[:2] = site + 1, value[0]


def _pad(x, shape, dtype):
    whole = np.zeros(shape, dtype)
    whole[..., : x.shape[-2], : x.shape[-1]] = x
    return whole


def _multiply(r, grid, buffers, dtype, left, right):
    """Products [batch..., rows, columns] of [batch..., rows, depth] and [batch..., columns, depth]."""
    x, w = r[left], np.swapaxes(r[right], -1, -2)
    outer, (m, k), n = np.broadcast_shapes(x.shape[:-2], w.shape[:-2]), x.shape[-2:], w.shape[-1]
    depth, width = (-(-size // SIZE) for size in (k, n))
    activations = _pad(x, (*outer, m, depth * SIZE), dtype).reshape(*outer, m, depth, 1, SIZE)
    activations = np.moveaxis(activations, -4, 0)  # [row, batch..., depth, 1, cell]
    weights = _pad(w, (*outer, depth * SIZE, width * SIZE), dtype).reshape(*outer, depth, SIZE, width, SIZE)
    weights = np.swapaxes(weights, -3, -2)
    moving, sums = np.zeros_like(weights), np.zeros_like(weights)
    idle, made = np.zeros_like(sums[..., :1, :]), np.zeros((m, *weights.shape[:-2], SIZE), dtype)
    for cycle in range(m + 2 * SIZE - 1):
        moving[..., 1:] = moving[..., :-1].copy()
        for cell in range(max(0, cycle - m + 1), min(cycle + 1, SIZE)):  # row i enters at cell 0 in cycle i
            moving[..., cell, 0] = activations[cycle - cell][..., cell]
        sums = moving * weights + np.concatenate([idle, sums[..., :-1, :]], -2)
        for column in range(max(0, cycle - SIZE + 2 - m), min(cycle - SIZE + 2, SIZE)):
            made[cycle - SIZE + 1 - column, ..., column] = sums[..., -1, column]
    total = np.add.reduce(made, axis=-3, dtype=dtype)  # of the tiles along the depth
    return np.moveaxis(total.reshape(m, *outer, width * SIZE)[..., :n], 0, -2)


_UNITS = {
    "GRID": lambda r, grid, buffers, extents: None,
    "IOTA": lambda r, grid, b, x: np.arange(grid[x]).reshape([n if i == x else 1 for i, n in enumerate(grid)]),
    "AFFINE": _affine, "LOAD": _load, "ALU": _alu,
    "REDUCE": _reduce, "STORE": _store, "PHILOX": _philox, "CHECK": _check, "MATMUL": _multiply,
    "CONST": lambda r, grid, b, dtype, data: np.frombuffer(bytes.fromhex(data), dtype).reshape((1,) * len(grid)),
    "DIV": lambda r, grid, buffers, x, divisor: r[x] // divisor,
    "MOD": lambda r, grid, buffers, x, divisor: r[x] % divisor,
    "CLIP": lambda r, grid, buffers, x, extent: np.clip(r[x].astype(np.int64), 0, extent - 1),
    "WITHIN": lambda r, grid, buffers, x, low, high: (r[x] >= low) & (r[x] < high),
}  # fmt: skip
