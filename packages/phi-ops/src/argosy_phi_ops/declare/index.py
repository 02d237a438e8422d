"""Which module below ``argosy_phi_ops.ops`` declares which operator, so that nothing is imported before it is used.

Committed; ``python -m argosy_phi_ops.declare.index`` writes it anew after an operator was added, and a test compares.
"""

from __future__ import annotations

__all__ = ["COMPOSED", "MEMBERS", "MODULES", "scan", "scan_compositions", "scan_members"]

# fmt: off
MODULES: dict[str, str] = {
    # arithmetic
    "abs": "arithmetic", "add": "arithmetic", "add_n": "arithmetic", "clip": "arithmetic",
    "divide": "arithmetic", "floor_divide": "arithmetic", "fmax": "arithmetic", "fmin": "arithmetic",
    "heaviside": "arithmetic", "increment": "arithmetic", "lerp": "arithmetic", "maximum": "arithmetic",
    "minimum": "arithmetic", "multiply": "arithmetic", "neg": "arithmetic", "pow": "arithmetic",
    "reciprocal": "arithmetic", "remainder": "arithmetic", "rsqrt": "arithmetic", "scale": "arithmetic",
    "sign": "arithmetic", "sqrt": "arithmetic", "square": "arithmetic", "subtract": "arithmetic",
    # bitwise
    "bitwise_and": "bitwise", "bitwise_left_shift": "bitwise", "bitwise_not": "bitwise",
    "bitwise_or": "bitwise", "bitwise_right_shift": "bitwise", "bitwise_xor": "bitwise",
    # complex
    "angle": "complex", "as_complex": "complex", "as_real": "complex", "complex": "complex",
    "conj": "complex", "imag": "complex", "polar": "complex", "real": "complex",
    # creation.constants
    "empty": "creation.constants", "empty_like": "creation.constants", "full": "creation.constants",
    "full_like": "creation.constants", "ones": "creation.constants", "ones_like": "creation.constants",
    "zeros": "creation.constants", "zeros_like": "creation.constants",
    # creation.matrices
    "diag": "creation.matrices", "diag_embed": "creation.matrices", "diagonal": "creation.matrices",
    "eye": "creation.matrices", "one_hot": "creation.matrices", "tril": "creation.matrices",
    "tril_indices": "creation.matrices", "triu": "creation.matrices", "triu_indices": "creation.matrices",
    "vander": "creation.matrices",
    # creation.ranges
    "arange": "creation.ranges", "linspace": "creation.ranges", "logspace": "creation.ranges",
    "meshgrid": "creation.ranges",
    # cumulative
    "cummax": "cumulative", "cummin": "cumulative", "cumprod": "cumulative", "cumsum": "cumulative",
    "diff": "cumulative", "logcumsumexp": "cumulative",
    # exponential
    "exp": "exponential", "expm1": "exponential", "log": "exponential", "log10": "exponential",
    "log1p": "exponential", "log2": "exponential", "logaddexp": "exponential", "logit": "exponential",
    "sigmoid": "exponential",
    # fft
    "fft_c2c": "fft", "fft_c2r": "fft", "fft_r2c": "fft",
    # floating_point
    "copysign": "floating_point", "frexp": "floating_point", "ldexp": "floating_point",
    "nan_to_num": "floating_point", "nextafter": "floating_point", "signbit": "floating_point",
    # indexing.assignment
    "setitem": "indexing.assignment",
    # indexing.gather
    "gather": "indexing.gather", "gather_nd": "indexing.gather", "index_sample": "indexing.gather",
    "index_select": "indexing.gather", "shard_index": "indexing.gather", "take": "indexing.gather",
    "take_along_axis": "indexing.gather",
    # indexing.masking
    "masked_fill": "indexing.masking", "masked_scatter": "indexing.masking",
    "masked_select": "indexing.masking", "nonzero": "indexing.masking", "sequence_mask": "indexing.masking",
    "where": "indexing.masking",
    # indexing.overwriting
    "overwritten_view": "indexing.overwriting",
    # indexing.scatter
    "index_add": "indexing.scatter", "index_fill": "indexing.scatter", "put_along_axis": "indexing.scatter",
    "scatter": "indexing.scatter", "scatter_nd": "indexing.scatter", "scatter_nd_add": "indexing.scatter",
    # indexing.slicing
    "crop": "indexing.slicing", "narrow": "indexing.slicing", "slice": "indexing.slicing",
    "strided_slice": "indexing.slicing",
    # indexing.subscript
    "getitem": "indexing.subscript",
    # linalg.decompositions
    "cholesky": "linalg.decompositions", "eig": "linalg.decompositions", "eigh": "linalg.decompositions",
    "eigvals": "linalg.decompositions", "eigvalsh": "linalg.decompositions",
    "lu_factor": "linalg.decompositions", "permutation_of": "linalg.decompositions",
    "qr": "linalg.decompositions", "svd": "linalg.decompositions", "svdvals": "linalg.decompositions",
    # linalg.distances
    "cdist": "linalg.distances", "dist": "linalg.distances", "pairwise_distance": "linalg.distances",
    # linalg.einsum
    "einsum": "linalg.einsum",
    # linalg.grouped_products
    "gather_mm": "linalg.grouped_products",
    # linalg.least_squares
    "least_squares": "linalg.least_squares", "pinv": "linalg.least_squares",
    # linalg.norms
    "matrix_norm": "linalg.norms", "norm": "linalg.norms", "renorm": "linalg.norms", "trace": "linalg.norms",
    "vector_norm": "linalg.norms",
    # linalg.powers
    "det": "linalg.powers", "matrix_power": "linalg.powers", "slogdet": "linalg.powers",
    # linalg.products
    "addmm": "linalg.products", "baddbmm": "linalg.products", "bmm": "linalg.products",
    "cross": "linalg.products", "dot": "linalg.products", "inner": "linalg.products",
    "kron": "linalg.products", "matmul": "linalg.products", "mm": "linalg.products", "mv": "linalg.products",
    "outer": "linalg.products", "tensordot": "linalg.products", "vecdot": "linalg.products",
    # linalg.solvers
    "cholesky_inverse": "linalg.solvers", "cholesky_solve": "linalg.solvers", "inv": "linalg.solvers",
    "solve": "linalg.solvers", "triangular_solve": "linalg.solvers",
    # logic
    "allclose": "logic", "equal": "logic", "equal_all": "logic", "greater_equal": "logic",
    "greater_than": "logic", "isclose": "logic", "isfinite": "logic", "isinf": "logic", "isnan": "logic",
    "isneginf": "logic", "isposinf": "logic", "isreal": "logic", "less_equal": "logic", "less_than": "logic",
    "logical_and": "logic", "logical_not": "logic", "logical_or": "logic", "logical_xor": "logic",
    "not_equal": "logic",
    # manipulation.axes
    "matrix_transpose": "manipulation.axes", "moveaxis": "manipulation.axes", "swapaxes": "manipulation.axes",
    "t": "manipulation.axes", "transpose": "manipulation.axes",
    # manipulation.casting
    "assign": "manipulation.casting", "astype": "manipulation.casting", "cast": "manipulation.casting",
    "clone": "manipulation.casting",
    # manipulation.joining
    "chunk": "manipulation.joining", "concat": "manipulation.joining", "split": "manipulation.joining",
    "stack": "manipulation.joining", "unbind": "manipulation.joining",
    # manipulation.padding
    "pad": "manipulation.padding",
    # manipulation.rearrangement
    "flip": "manipulation.rearrangement", "roll": "manipulation.rearrangement",
    "rot90": "manipulation.rearrangement",
    # manipulation.shape
    "flatten": "manipulation.shape", "ravel": "manipulation.shape", "reshape": "manipulation.shape",
    "squeeze": "manipulation.shape", "unflatten": "manipulation.shape", "unsqueeze": "manipulation.shape",
    "view": "manipulation.shape", "view_as": "manipulation.shape",
    # manipulation.strides
    "as_strided": "manipulation.strides", "unfold": "manipulation.strides",
    # manipulation.tiling
    "broadcast_tensors": "manipulation.tiling", "broadcast_to": "manipulation.tiling",
    "expand": "manipulation.tiling", "expand_as": "manipulation.tiling",
    "repeat_interleave": "manipulation.tiling", "tile": "manipulation.tiling",
    # nn.activation
    "celu": "nn.activation", "elu": "nn.activation", "gelu": "nn.activation", "glu": "nn.activation",
    "hardshrink": "nn.activation", "hardsigmoid": "nn.activation", "hardswish": "nn.activation",
    "hardtanh": "nn.activation", "leaky_relu": "nn.activation", "log_sigmoid": "nn.activation",
    "log_softmax": "nn.activation", "mish": "nn.activation", "prelu": "nn.activation",
    "relu": "nn.activation", "relu6": "nn.activation", "selu": "nn.activation", "silu": "nn.activation",
    "softmax": "nn.activation", "softplus": "nn.activation", "softshrink": "nn.activation",
    "softsign": "nn.activation", "swiglu": "nn.activation", "swish": "nn.activation",
    "tanhshrink": "nn.activation", "thresholded_relu": "nn.activation",
    # nn.adaptive_pooling
    "adaptive_avg_pool1d": "nn.adaptive_pooling", "adaptive_avg_pool2d": "nn.adaptive_pooling",
    "adaptive_avg_pool3d": "nn.adaptive_pooling", "adaptive_max_pool1d": "nn.adaptive_pooling",
    "adaptive_max_pool2d": "nn.adaptive_pooling", "adaptive_max_pool3d": "nn.adaptive_pooling",
    # nn.attention
    "attention_with_dropout": "nn.attention", "scaled_dot_product_attention": "nn.attention",
    # nn.beam_search
    "gather_tree": "nn.beam_search",
    # nn.common
    "bilinear": "nn.common", "cosine_similarity": "nn.common", "embedding": "nn.common",
    "linear": "nn.common",
    # nn.convolution
    "conv1d": "nn.convolution", "conv1d_transpose": "nn.convolution", "conv2d": "nn.convolution",
    "conv2d_transpose": "nn.convolution", "conv3d": "nn.convolution", "conv3d_transpose": "nn.convolution",
    # nn.dropout
    "dropout": "nn.dropout",
    # nn.grid_sampling
    "affine_grid": "nn.grid_sampling", "grid_sample": "nn.grid_sampling",
    # nn.interpolation
    "interpolate": "nn.interpolation",
    # nn.loss
    "binary_cross_entropy": "nn.loss", "binary_cross_entropy_with_logits": "nn.loss",
    "cross_entropy": "nn.loss", "hinge_embedding_loss": "nn.loss", "kl_div": "nn.loss", "l1_loss": "nn.loss",
    "label_smooth": "nn.loss", "margin_ranking_loss": "nn.loss", "mse_loss": "nn.loss", "nll_loss": "nn.loss",
    "smooth_l1_loss": "nn.loss", "soft_margin_loss": "nn.loss", "softmax_with_cross_entropy": "nn.loss",
    "square_error_cost": "nn.loss",
    # nn.normalization
    "batch_norm": "nn.normalization", "group_norm": "nn.normalization", "instance_norm": "nn.normalization",
    "layer_norm": "nn.normalization", "normalize": "nn.normalization", "rms_norm": "nn.normalization",
    # nn.paged_attention
    "paged_attention": "nn.paged_attention",
    # nn.pooling
    "avg_pool1d": "nn.pooling", "avg_pool2d": "nn.pooling", "avg_pool3d": "nn.pooling",
    "max_pool1d": "nn.pooling", "max_pool2d": "nn.pooling", "max_pool3d": "nn.pooling",
    # nn.quantization
    "llm_int8_linear": "nn.quantization", "weight_dequantize": "nn.quantization",
    "weight_only_linear": "nn.quantization", "weight_quantize": "nn.quantization",
    # nn.recurrent
    "gru": "nn.recurrent", "lstm": "nn.recurrent", "simple_rnn": "nn.recurrent",
    # nn.sequence_alignment
    "ctc_paths": "nn.sequence_alignment", "rnnt_paths": "nn.sequence_alignment",
    # nn.sum_pooling
    "sum_pool2d": "nn.sum_pooling",
    # nn.unpooling
    "fractional_windows": "nn.unpooling", "unpool": "nn.unpooling",
    # nn.vision
    "channel_shuffle": "nn.vision", "im2col": "nn.vision", "pixel_shuffle": "nn.vision",
    "pixel_unshuffle": "nn.vision",
    # random.distributions
    "bernoulli": "random.distributions", "exponential": "random.distributions",
    "gaussian": "random.distributions", "multinomial": "random.distributions",
    "normal": "random.distributions", "rand": "random.distributions", "rand_like": "random.distributions",
    "randint": "random.distributions", "randn": "random.distributions", "randn_like": "random.distributions",
    "randperm": "random.distributions", "uniform": "random.distributions",
    # random.rejection
    "binomial": "random.rejection", "poisson": "random.rejection", "standard_gamma": "random.rejection",
    # rational
    "gcd": "rational", "lcm": "rational",
    # reduction
    "all": "reduction", "amax": "reduction", "amin": "reduction", "any": "reduction",
    "count_nonzero": "reduction", "logsumexp": "reduction", "max": "reduction", "mean": "reduction",
    "min": "reduction", "nanmean": "reduction", "nansum": "reduction", "numel": "reduction",
    "prod": "reduction", "reduce_as": "reduction", "sum": "reduction",
    # rounding
    "ceil": "rounding", "floor": "rounding", "frac": "rounding", "round": "rounding", "trunc": "rounding",
    # search
    "argmax": "search", "argmin": "search", "argsort": "search", "bucketize": "search", "kthvalue": "search",
    "mode": "search", "searchsorted": "search", "sort": "search", "topk": "search",
    # sets
    "isin": "sets", "unique": "sets",
    # special.bessel
    "i0": "special.bessel", "i0e": "special.bessel", "i1": "special.bessel", "i1e": "special.bessel",
    "k0": "special.bessel", "k0e": "special.bessel", "k1": "special.bessel", "k1e": "special.bessel",
    # special.error
    "erf": "special.error", "erfinv": "special.error",
    # special.gamma
    "digamma": "special.gamma", "gammainc": "special.gamma", "gammaincc": "special.gamma",
    "lgamma": "special.gamma", "multigammaln": "special.gamma", "polygamma": "special.gamma",
    # special.zeta
    "zeta": "special.zeta",
    # statistics
    "bincount": "statistics", "histogram": "statistics", "median": "statistics", "std": "statistics",
    "var": "statistics",
    # trigonometric
    "acos": "trigonometric", "acosh": "trigonometric", "asin": "trigonometric", "asinh": "trigonometric",
    "atan": "trigonometric", "atan2": "trigonometric", "atanh": "trigonometric", "cos": "trigonometric",
    "cosh": "trigonometric", "deg2rad": "trigonometric", "hypot": "trigonometric", "rad2deg": "trigonometric",
    "sin": "trigonometric", "sinc": "trigonometric", "sinh": "trigonometric", "stanh": "trigonometric",
    "tan": "trigonometric", "tanh": "trigonometric",
}
COMPOSED: dict[str, str] = {
    # arithmetic
    "positive": "arithmetic", "pow": "arithmetic", "true_divide": "arithmetic",
    # attributes
    "is_complex": "attributes", "is_empty": "attributes", "is_floating_point": "attributes",
    "is_integer": "attributes", "rank": "attributes", "shape": "attributes", "tolist": "attributes",
    # complex
    "view_as_complex": "complex", "view_as_real": "complex",
    # creation
    "diagflat": "creation", "meshgrid": "creation", "one_hot": "creation", "range": "creation",
    # cumulative
    "cumulative_trapezoid": "cumulative", "trapezoid": "cumulative",
    # indexing
    "argwhere": "indexing", "diagonal_scatter": "indexing", "fill_diagonal_": "indexing",
    "fill_diagonal_tensor": "indexing", "index_put": "indexing", "masked_select": "indexing",
    "nonzero": "indexing", "scatter_add": "indexing", "scatter_reduce": "indexing",
    "select_scatter": "indexing", "sequence_mask": "indexing", "slice_scatter": "indexing",
    "where": "indexing", "where_": "indexing",
    # linalg
    "cond": "linalg", "householder_product": "linalg", "lstsq": "linalg", "lu": "linalg",
    "lu_solve": "linalg", "lu_unpack": "linalg", "matrix_exp": "linalg", "matrix_rank": "linalg",
    "multi_dot": "linalg", "norm": "linalg", "normalize": "linalg", "ormqr": "linalg",
    "pca_lowrank": "linalg", "pdist": "linalg", "svd_lowrank": "linalg", "vector_norm": "linalg",
    # manipulation
    "atleast_1d": "manipulation", "atleast_2d": "manipulation", "atleast_3d": "manipulation",
    "block_diag": "manipulation", "broadcast_shape": "manipulation", "broadcast_shapes": "manipulation",
    "broadcast_tensors": "manipulation", "cartesian_prod": "manipulation", "cast_": "manipulation",
    "chunk": "manipulation", "column_stack": "manipulation", "combinations": "manipulation",
    "dsplit": "manipulation", "dstack": "manipulation", "hsplit": "manipulation", "hstack": "manipulation",
    "multiplex": "manipulation", "permute": "manipulation", "repeat": "manipulation",
    "row_stack": "manipulation", "split": "manipulation", "split_with_sizes": "manipulation",
    "t_": "manipulation", "tensor_split": "manipulation", "transpose_": "manipulation",
    "unbind": "manipulation", "unstack": "manipulation", "vsplit": "manipulation", "vstack": "manipulation",
    # random
    "bernoulli_": "random", "cauchy_": "random", "exponential_": "random", "geometric_": "random",
    "log_normal": "random", "log_normal_": "random", "normal_": "random", "randint_like": "random",
    "random_": "random", "standard_normal": "random", "top_p_sampling": "random", "uniform_": "random",
    # search
    "msort": "search", "topk": "search",
    # sets
    "unique_consecutive": "sets",
    # statistics
    "corrcoef": "statistics", "cov": "statistics", "histogram_bin_edges": "statistics",
    "histogramdd": "statistics", "nanmedian": "statistics", "nanquantile": "statistics",
    "quantile": "statistics",
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
    return {name.rstrip("_"): module for name, module in _declarations("ops", "operator")}


def scan_compositions() -> dict[str, str]:
    """Which module of ``compositions`` declares which function, as the sources stand."""
    return dict(_declarations("compositions", "compose"))


def _declarations(folder: str, decorator: str) -> list[tuple[str, str]]:
    """Functions with such a decorator in the modules of a folder and of those in it, by name."""
    import ast
    from pathlib import Path

    root = Path(__file__).parents[1] / folder
    found: dict[str, str] = {}
    for path in sorted(root.rglob("*.py")):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and any(_is_operator(d, decorator) for d in node.decorator_list):
                found[node.name] = module
    return sorted(found.items())


def scan_members() -> dict[str, str]:
    """Which module of ``members`` has which method of ``Tensor``, as the modules stand."""
    from importlib import import_module
    from pathlib import Path

    found: dict[str, str] = {}
    for path in sorted((Path(__file__).parents[1] / "members").glob("[!_]*.py")):
        table = import_module("argosy_phi_ops.members." + path.stem).MEMBERS
        found.update(dict.fromkeys(table, path.stem))
    return dict(sorted(found.items()))


def _is_operator(decorator: object, wanted: str) -> bool:
    name = getattr(getattr(decorator, "func", None), "id", "")
    return name == wanted


def _rewrite() -> None:
    from pathlib import Path

    path = Path(__file__)
    head, _, rest = path.read_text(encoding="utf-8").partition("# fmt: off\n")
    tail = rest.partition("# fmt: on\n")[2]
    tables = {"MODULES": scan(), "COMPOSED": scan_compositions(), "MEMBERS": scan_members()}
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
