"""Which module of ``argosy_phi_ops.ops`` declares which operator, so that nothing is imported before it is used.

Committed; ``python -m argosy_phi_ops.declare.index`` writes it anew after an operator was added, and a test compares.
"""

from __future__ import annotations

__all__ = ["COMPOSED", "MEMBERS", "MODULES", "scan", "scan_composed", "scan_members"]

# fmt: off
MODULES: dict[str, str] = {
    # activation
    "celu": "activation", "elu": "activation", "gelu": "activation", "glu": "activation",
    "hardshrink": "activation", "hardsigmoid": "activation", "hardswish": "activation",
    "hardtanh": "activation", "leaky_relu": "activation", "log_sigmoid": "activation",
    "log_softmax": "activation", "mish": "activation", "prelu": "activation", "relu": "activation",
    "relu6": "activation", "selu": "activation", "silu": "activation", "softmax": "activation",
    "softplus": "activation", "softshrink": "activation", "softsign": "activation", "swiglu": "activation",
    "swish": "activation", "tanhshrink": "activation", "thresholded_relu": "activation",
    # alignment
    "ctc_paths": "alignment", "rnnt_paths": "alignment",
    # arithmetic
    "add_n": "arithmetic", "atan2": "arithmetic", "clip": "arithmetic", "copysign": "arithmetic",
    "floor_divide": "arithmetic", "fmax": "arithmetic", "fmin": "arithmetic", "heaviside": "arithmetic",
    "hypot": "arithmetic", "lerp": "arithmetic", "logaddexp": "arithmetic", "maximum": "arithmetic",
    "minimum": "arithmetic", "nextafter": "arithmetic", "remainder": "arithmetic", "scale": "arithmetic",
    # comparison
    "allclose": "comparison", "bitwise_and": "comparison", "bitwise_left_shift": "comparison",
    "bitwise_not": "comparison", "bitwise_or": "comparison", "bitwise_right_shift": "comparison",
    "bitwise_xor": "comparison", "equal": "comparison", "equal_all": "comparison",
    "greater_equal": "comparison", "greater_than": "comparison", "isclose": "comparison",
    "less_equal": "comparison", "less_than": "comparison", "logical_and": "comparison",
    "logical_not": "comparison", "logical_or": "comparison", "logical_xor": "comparison",
    "not_equal": "comparison",
    # convolution
    "conv1d": "convolution", "conv1d_transpose": "convolution", "conv2d": "convolution",
    "conv2d_transpose": "convolution", "conv3d": "convolution", "conv3d_transpose": "convolution",
    # counts
    "binomial": "counts", "poisson": "counts", "standard_gamma": "counts",
    # creation
    "arange": "creation", "empty": "creation", "empty_like": "creation", "eye": "creation",
    "full": "creation", "full_like": "creation", "linspace": "creation", "logspace": "creation",
    "meshgrid": "creation", "one_hot": "creation", "ones": "creation", "ones_like": "creation",
    "tril_indices": "creation", "triu_indices": "creation", "zeros": "creation", "zeros_like": "creation",
    # elementary
    "abs": "elementary", "acos": "elementary", "acosh": "elementary", "asin": "elementary",
    "asinh": "elementary", "atan": "elementary", "atanh": "elementary", "cos": "elementary",
    "cosh": "elementary", "deg2rad": "elementary", "digamma": "elementary", "erf": "elementary",
    "erfinv": "elementary", "exp": "elementary", "expm1": "elementary", "lgamma": "elementary",
    "log": "elementary", "log10": "elementary", "log1p": "elementary", "log2": "elementary",
    "logit": "elementary", "neg": "elementary", "rad2deg": "elementary", "reciprocal": "elementary",
    "rsqrt": "elementary", "sigmoid": "elementary", "sign": "elementary", "sin": "elementary",
    "sinc": "elementary", "sinh": "elementary", "sqrt": "elementary", "square": "elementary",
    "stanh": "elementary", "tan": "elementary", "tanh": "elementary",
    # fft
    "fft_c2c": "fft", "fft_c2r": "fft", "fft_r2c": "fft",
    # floats
    "angle": "floats", "ceil": "floats", "complex": "floats", "conj": "floats", "floor": "floats",
    "frac": "floats", "imag": "floats", "isfinite": "floats", "isinf": "floats", "isnan": "floats",
    "isneginf": "floats", "isposinf": "floats", "nan_to_num": "floats", "real": "floats", "round": "floats",
    "trunc": "floats",
    # indexing
    "gather": "indexing", "gather_nd": "indexing", "index_add": "indexing", "index_fill": "indexing",
    "index_sample": "indexing", "index_select": "indexing", "masked_select": "indexing",
    "nonzero": "indexing", "put_along_axis": "indexing", "scatter": "indexing", "scatter_nd": "indexing",
    "scatter_nd_add": "indexing", "take": "indexing", "take_along_axis": "indexing", "unique": "indexing",
    # least_squares
    "least_squares": "least_squares", "pinv": "least_squares",
    # linalg
    "matmul": "linalg",
    # loss
    "binary_cross_entropy": "loss", "binary_cross_entropy_with_logits": "loss", "cross_entropy": "loss",
    "hinge_embedding_loss": "loss", "kl_div": "loss", "l1_loss": "loss", "label_smooth": "loss",
    "margin_ranking_loss": "loss", "mse_loss": "loss", "nll_loss": "loss", "smooth_l1_loss": "loss",
    "soft_margin_loss": "loss", "softmax_with_cross_entropy": "loss", "square_error_cost": "loss",
    # manipulation
    "assign": "manipulation", "astype": "manipulation", "cast": "manipulation", "chunk": "manipulation",
    "clone": "manipulation", "concat": "manipulation", "flatten": "manipulation", "flip": "manipulation",
    "matrix_transpose": "manipulation", "moveaxis": "manipulation", "reshape": "manipulation",
    "roll": "manipulation", "split": "manipulation", "squeeze": "manipulation", "stack": "manipulation",
    "swapaxes": "manipulation", "t": "manipulation", "transpose": "manipulation", "unbind": "manipulation",
    "unsqueeze": "manipulation", "view": "manipulation",
    # masking
    "diag": "masking", "diag_embed": "masking", "diagonal": "masking", "masked_fill": "masking",
    "tril": "masking", "triu": "masking", "where": "masking",
    # math
    "add": "math", "divide": "math", "multiply": "math", "pow": "math", "subtract": "math",
    # nn
    "attention_with_dropout": "nn", "bilinear": "nn", "cosine_similarity": "nn", "embedding": "nn",
    "linear": "nn", "scaled_dot_product_attention": "nn",
    # normalization
    "batch_norm": "normalization", "group_norm": "normalization", "instance_norm": "normalization",
    "layer_norm": "normalization", "normalize": "normalization", "rms_norm": "normalization",
    # norms
    "matrix_norm": "norms", "norm": "norms", "vector_norm": "norms",
    # numeric
    "bincount": "numeric", "cdist": "numeric", "cummax": "numeric", "cummin": "numeric", "diff": "numeric",
    "dist": "numeric", "gcd": "numeric", "histogram": "numeric", "lcm": "numeric", "ldexp": "numeric",
    "multigammaln": "numeric", "pairwise_distance": "numeric", "vander": "numeric",
    # overwriting
    "overwritten_view": "overwriting",
    # paged
    "paged_attention": "paged",
    # pooling
    "adaptive_avg_pool1d": "pooling", "adaptive_avg_pool2d": "pooling", "adaptive_avg_pool3d": "pooling",
    "adaptive_max_pool1d": "pooling", "adaptive_max_pool2d": "pooling", "adaptive_max_pool3d": "pooling",
    "avg_pool1d": "pooling", "avg_pool2d": "pooling", "avg_pool3d": "pooling", "max_pool1d": "pooling",
    "max_pool2d": "pooling", "max_pool3d": "pooling",
    # products
    "addmm": "products", "baddbmm": "products", "bmm": "products", "cross": "products", "dot": "products",
    "einsum": "products", "inner": "products", "kron": "products", "mm": "products", "mv": "products",
    "outer": "products", "tensordot": "products", "vecdot": "products",
    # quantised
    "llm_int8_linear": "quantised", "weight_dequantize": "quantised", "weight_only_linear": "quantised",
    "weight_quantize": "quantised",
    # random
    "bernoulli": "random", "dropout": "random", "exponential": "random", "gaussian": "random",
    "multinomial": "random", "normal": "random", "rand": "random", "rand_like": "random", "randint": "random",
    "randn": "random", "randn_like": "random", "randperm": "random", "uniform": "random",
    # rearrangement
    "as_complex": "rearrangement", "as_real": "rearrangement", "broadcast_tensors": "rearrangement",
    "increment": "rearrangement", "isin": "rearrangement", "masked_scatter": "rearrangement",
    "narrow": "rearrangement", "ravel": "rearrangement", "rot90": "rearrangement",
    "sequence_mask": "rearrangement", "slice": "rearrangement", "strided_slice": "rearrangement",
    "unflatten": "rearrangement", "view_as": "rearrangement",
    # recurrent
    "gru": "recurrent", "lstm": "recurrent", "simple_rnn": "recurrent",
    # reduction
    "all": "reduction", "amax": "reduction", "amin": "reduction", "any": "reduction", "argmax": "reduction",
    "argmin": "reduction", "count_nonzero": "reduction", "cumprod": "reduction", "cumsum": "reduction",
    "logcumsumexp": "reduction", "logsumexp": "reduction", "max": "reduction", "mean": "reduction",
    "min": "reduction", "nanmean": "reduction", "nansum": "reduction", "numel": "reduction",
    "prod": "reduction", "std": "reduction", "sum": "reduction", "trace": "reduction", "var": "reduction",
    # repetition
    "broadcast_to": "repetition", "expand": "repetition", "expand_as": "repetition", "pad": "repetition",
    "repeat_interleave": "repetition", "tile": "repetition",
    # resizing
    "interpolate": "resizing",
    # sampling
    "affine_grid": "sampling", "grid_sample": "sampling",
    # search
    "argsort": "search", "bucketize": "search", "kthvalue": "search", "median": "search", "mode": "search",
    "searchsorted": "search", "sort": "search", "topk": "search",
    # sequences
    "gather_tree": "sequences",
    # solvers
    "cholesky": "solvers", "cholesky_inverse": "solvers", "cholesky_solve": "solvers", "det": "solvers",
    "eig": "solvers", "eigh": "solvers", "eigvals": "solvers", "eigvalsh": "solvers", "inv": "solvers",
    "lu_factor": "solvers", "matrix_power": "solvers", "permutation_of": "solvers", "qr": "solvers",
    "slogdet": "solvers", "solve": "solvers", "svd": "solvers", "svdvals": "solvers",
    "triangular_solve": "solvers",
    # special
    "frexp": "special", "gammainc": "special", "gammaincc": "special", "i0": "special", "i0e": "special",
    "i1": "special", "i1e": "special", "isreal": "special", "polygamma": "special", "signbit": "special",
    # subscript
    "getitem": "subscript", "setitem": "subscript",
    # sum_pooling
    "sum_pool2d": "sum_pooling",
    # unpooling
    "fractional_windows": "unpooling", "unpool": "unpooling",
    # vision
    "channel_shuffle": "vision", "im2col": "vision", "pixel_shuffle": "vision", "pixel_unshuffle": "vision",
    # windows
    "as_strided": "windows", "crop": "windows", "polar": "windows", "reduce_as": "windows",
    "renorm": "windows", "shard_index": "windows", "unfold": "windows",
    # zeta
    "k0": "zeta", "k0e": "zeta", "k1": "zeta", "k1e": "zeta", "zeta": "zeta",
}
COMPOSED: dict[str, str] = {
    # attributes
    "cast_": "attributes", "diagflat": "attributes", "is_complex": "attributes", "is_empty": "attributes",
    "is_floating_point": "attributes", "is_integer": "attributes", "msort": "attributes",
    "positive": "attributes", "range": "attributes", "rank": "attributes", "repeat": "attributes",
    "shape": "attributes", "tolist": "attributes", "view_as_complex": "attributes",
    "view_as_real": "attributes",
    # matrices
    "cond": "matrices", "householder_product": "matrices", "lstsq": "matrices", "lu": "matrices",
    "lu_solve": "matrices", "lu_unpack": "matrices", "matrix_exp": "matrices", "matrix_rank": "matrices",
    "multi_dot": "matrices", "norm": "matrices", "normalize": "matrices", "ormqr": "matrices",
    "pca_lowrank": "matrices", "pdist": "matrices", "svd_lowrank": "matrices", "vector_norm": "matrices",
    # powers
    "pow": "powers",
    # sampling
    "bernoulli_": "sampling", "cauchy_": "sampling", "exponential_": "sampling", "geometric_": "sampling",
    "log_normal": "sampling", "log_normal_": "sampling", "normal_": "sampling", "randint_like": "sampling",
    "random_": "sampling", "standard_normal": "sampling", "top_p_sampling": "sampling",
    "uniform_": "sampling",
    # scattering
    "diagonal_scatter": "scattering", "fill_diagonal_": "scattering", "fill_diagonal_tensor": "scattering",
    "index_put": "scattering", "scatter_add": "scattering", "scatter_reduce": "scattering",
    "select_scatter": "scattering", "slice_scatter": "scattering",
    # selection
    "argwhere": "selection", "masked_select": "selection", "nonzero": "selection", "one_hot": "selection",
    "sequence_mask": "selection", "topk": "selection", "where": "selection", "where_": "selection",
    # stacking
    "atleast_1d": "stacking", "atleast_2d": "stacking", "atleast_3d": "stacking", "block_diag": "stacking",
    "broadcast_shape": "stacking", "broadcast_shapes": "stacking", "broadcast_tensors": "stacking",
    "cartesian_prod": "stacking", "chunk": "stacking", "column_stack": "stacking", "combinations": "stacking",
    "dsplit": "stacking", "dstack": "stacking", "hsplit": "stacking", "hstack": "stacking",
    "meshgrid": "stacking", "multiplex": "stacking", "permute": "stacking", "row_stack": "stacking",
    "split": "stacking", "split_with_sizes": "stacking", "t_": "stacking", "tensor_split": "stacking",
    "transpose_": "stacking", "true_divide": "stacking", "unbind": "stacking", "unstack": "stacking",
    "vsplit": "stacking", "vstack": "stacking",
    # statistics
    "corrcoef": "statistics", "cov": "statistics", "cumulative_trapezoid": "statistics",
    "histogram_bin_edges": "statistics", "histogramdd": "statistics", "nanmedian": "statistics",
    "nanquantile": "statistics", "quantile": "statistics", "trapezoid": "statistics",
    # unique
    "unique_consecutive": "unique",
}
MEMBERS: dict[str, str] = {
    # conversions
    "T": "conversions", "_to": "conversions", "astype": "conversions", "bfloat16": "conversions",
    "bool": "conversions", "byte": "conversions", "cdouble": "conversions", "cfloat": "conversions",
    "char": "conversions", "complex128": "conversions", "complex64": "conversions",
    "contiguous": "conversions", "cpu": "conversions", "cuda": "conversions", "double": "conversions",
    "float": "conversions", "float16": "conversions", "float32": "conversions", "float64": "conversions",
    "half": "conversions", "int": "conversions", "int16": "conversions", "int32": "conversions",
    "int64": "conversions", "int8": "conversions", "long": "conversions", "mT": "conversions",
    "new_empty": "conversions", "new_full": "conversions", "new_ones": "conversions",
    "new_zeros": "conversions", "pin_memory": "conversions", "short": "conversions", "to": "conversions",
    "type_as": "conversions", "uint8": "conversions",
    # kinds
    "block": "kinds", "coalesce": "kinds", "cols": "kinds", "crows": "kinds", "dense_dim": "kinds",
    "get_map_tensor": "kinds", "get_selected_rows": "kinds", "get_tensor": "kinds", "grad_": "kinds",
    "grad_fn": "kinds", "indices": "kinds", "is_coalesced": "kinds", "is_dist": "kinds", "is_sparse": "kinds",
    "is_sparse_coo": "kinds", "is_sparse_csr": "kinds", "is_tensor": "kinds", "layout": "kinds",
    "nnz": "kinds", "num_shard": "kinds", "placements": "kinds", "process_mesh": "kinds", "rows": "kinds",
    "set_string_list": "kinds", "set_tensor": "kinds", "set_vocab": "kinds", "sparse_dim": "kinds",
    "to_dense": "kinds", "to_sparse_coo": "kinds", "to_sparse_csr": "kinds", "type": "kinds",
    "values": "kinds",
    # storage
    "apply": "storage", "apply_": "storage", "detach_": "storage", "fill_": "storage",
    "reconstruct_from_": "storage", "resize_": "storage", "set_": "storage", "zero_": "storage",
}
# fmt: on


def scan() -> dict[str, str]:
    """The table as the sources stand: a top-level function decorated with ``@operator(...)`` is a declaration."""
    import ast
    from pathlib import Path

    found: dict[str, str] = {}
    for path in sorted((Path(__file__).parents[1] / "ops").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and any(_is_operator(d) for d in node.decorator_list):
                found[node.name.rstrip("_")] = path.stem
    return dict(sorted(found.items()))


def scan_composed() -> dict[str, str]:
    """Which module of ``composed`` declares which function, as the sources stand."""
    import ast
    from pathlib import Path

    found: dict[str, str] = {}
    for path in sorted((Path(__file__).parents[1] / "composed").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and any(_is_operator(d, "composed") for d in node.decorator_list):
                found[node.name] = path.stem
    return dict(sorted(found.items()))


def scan_members() -> dict[str, str]:
    """Which module of ``members`` has which method of ``Tensor``, as the modules stand."""
    from importlib import import_module
    from pathlib import Path

    found: dict[str, str] = {}
    for path in sorted((Path(__file__).parents[1] / "members").glob("[!_]*.py")):
        table = import_module("argosy_phi_ops.members." + path.stem).MEMBERS
        found.update(dict.fromkeys(table, path.stem))
    return dict(sorted(found.items()))


def _is_operator(decorator: object, wanted: str = "operator") -> bool:
    name = getattr(getattr(decorator, "func", None), "id", "")
    return name == wanted


def _rewrite() -> None:
    from pathlib import Path

    path = Path(__file__)
    head, _, rest = path.read_text(encoding="utf-8").partition("# fmt: off\n")
    tail = rest.partition("# fmt: on\n")[2]
    tables = {"MODULES": scan(), "COMPOSED": scan_composed(), "MEMBERS": scan_members()}
    text = "\n".join(_table(name, found) for name, found in tables.items())
    path.write_text(head + "# fmt: off\n" + text + "\n# fmt: on\n" + tail, encoding="utf-8")


def _table(title: str, found: dict[str, str]) -> str:
    """The source of one table, its names grouped by module."""
    by_module: dict[str, list[str]] = {}
    for name, module in found.items():
        by_module.setdefault(module, []).append(name)
    lines = [f"{title}: dict[str, str] = {{"]
    for module, names in sorted(by_module.items()):
        lines.append(f"    # {module}")
        row = "   "
        for name in names:
            entry = f' "{name}": "{module}",'
            if len(row) + len(entry) > 110:
                lines.append(row)
                row = "   "
            row += entry
        lines.append(row)
    return "\n".join([*lines, "}"])


if __name__ == "__main__":
    _rewrite()
