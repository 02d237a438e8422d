"""Which module below ``argosy_phi_ops.ops`` declares which operator, so that nothing is imported before it is used.

Committed; ``python -m argosy_phi_ops.declare.index`` writes it anew after an operator was added, and a test compares.
"""

from __future__ import annotations

__all__ = ["COMPOSED", "MEMBERS", "MODULES", "scan", "scan_compositions", "scan_members"]


def _by_name(rows: dict[str, str]) -> dict[str, str]:
    """The module of each name, of rows of names by module."""
    return {name: module for module, names in rows.items() for name in names.split()}


# fmt: off
MODULES = _by_name({
    "arithmetic": """
        abs add add_n clip divide floor_divide fmax fmin heaviside increment lerp maximum minimum multiply neg
        pow reciprocal remainder rsqrt scale sign sqrt square subtract""",
    "bitwise": "bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor",
    "complex": "angle as_complex as_real complex conj imag polar real",
    "creation.constants": "empty empty_like full full_like ones ones_like zeros zeros_like",
    "creation.matrices": "diag diag_embed diagonal eye one_hot tril tril_indices triu triu_indices vander",
    "creation.ranges": "arange linspace logspace meshgrid",
    "cumulative": "cummax cummin cumprod cumsum diff logcumsumexp",
    "exponential": "exp expm1 log log10 log1p log2 logaddexp logit sigmoid",
    "fft": "fft_c2c fft_c2r fft_r2c",
    "floating_point": "copysign frexp ldexp nan_to_num nextafter signbit",
    "indexing.assignment": "setitem",
    "indexing.gather": "gather gather_nd index_sample index_select shard_index take take_along_axis",
    "indexing.masking": "masked_fill masked_scatter masked_select nonzero sequence_mask where",
    "indexing.overwriting": "overwritten_view",
    "indexing.scatter": "index_add index_fill put_along_axis scatter scatter_nd scatter_nd_add",
    "indexing.slicing": "crop narrow slice strided_slice",
    "indexing.subscript": "getitem",
    "linalg.decompositions": "cholesky eig eigh eigvals eigvalsh lu_factor permutation_of qr svd svdvals",
    "linalg.distances": "cdist dist pairwise_distance",
    "linalg.einsum": "einsum",
    "linalg.grouped_products": "gather_mm",
    "linalg.least_squares": "least_squares pinv",
    "linalg.norms": "matrix_norm norm renorm trace vector_norm",
    "linalg.powers": "det matrix_power slogdet",
    "linalg.products": "addmm baddbmm bmm cross dot inner kron matmul mm mv outer tensordot vecdot",
    "linalg.solvers": "cholesky_inverse cholesky_solve inv solve triangular_solve",
    "logic": """
        allclose equal equal_all greater_equal greater_than isclose isfinite isinf isnan isneginf isposinf
        isreal less_equal less_than logical_and logical_not logical_or logical_xor not_equal""",
    "manipulation.axes": "matrix_transpose moveaxis swapaxes t transpose",
    "manipulation.casting": "assign astype cast clone",
    "manipulation.joining": "chunk concat split stack unbind",
    "manipulation.padding": "pad",
    "manipulation.rearrangement": "flip roll rot90",
    "manipulation.shape": "flatten ravel reshape squeeze unflatten unsqueeze view view_as",
    "manipulation.strides": "as_strided unfold",
    "manipulation.tiling": "broadcast_tensors broadcast_to expand expand_as repeat_interleave tile",
    "nn.activation": """
        celu elu gelu glu hardshrink hardsigmoid hardswish hardtanh leaky_relu log_sigmoid log_softmax mish
        prelu relu relu6 selu silu softmax softplus softshrink softsign swiglu swish tanhshrink
        thresholded_relu""",
    "nn.adaptive_pooling": """
        adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
        adaptive_max_pool3d""",
    "nn.attention": "attention_with_dropout scaled_dot_product_attention",
    "nn.beam_search": "gather_tree",
    "nn.common": "bilinear cosine_similarity embedding linear",
    "nn.convolution": "conv1d conv1d_transpose conv2d conv2d_transpose conv3d conv3d_transpose",
    "nn.dropout": "dropout",
    "nn.grid_sampling": "affine_grid grid_sample",
    "nn.interpolation": "interpolate",
    "nn.loss": """
        binary_cross_entropy binary_cross_entropy_with_logits cross_entropy hinge_embedding_loss kl_div
        l1_loss label_smooth margin_ranking_loss mse_loss nll_loss smooth_l1_loss soft_margin_loss
        softmax_with_cross_entropy square_error_cost""",
    "nn.normalization": "batch_norm group_norm instance_norm layer_norm normalize rms_norm",
    "nn.paged_attention": "paged_attention",
    "nn.pooling": "avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d",
    "nn.quantization": "llm_int8_linear weight_dequantize weight_only_linear weight_quantize",
    "nn.recurrent": "gru lstm simple_rnn",
    "nn.sequence_alignment": "ctc_paths rnnt_paths",
    "nn.sum_pooling": "sum_pool2d",
    "nn.unpooling": "fractional_windows unpool",
    "nn.vision": "channel_shuffle im2col pixel_shuffle pixel_unshuffle",
    "random.distributions": """
        bernoulli exponential gaussian multinomial normal rand rand_like randint randn randn_like randperm
        uniform""",
    "random.rejection": "binomial poisson standard_gamma",
    "rational": "gcd lcm",
    "reduction": """
        all amax amin any count_nonzero logsumexp max mean min nanmean nansum numel prod reduce_as sum""",
    "rounding": "ceil floor frac round trunc",
    "search": "argmax argmin argsort bucketize kthvalue mode searchsorted sort topk",
    "sets": "isin unique",
    "special.bessel": "i0 i0e i1 i1e k0 k0e k1 k1e",
    "special.error": "erf erfinv",
    "special.gamma": "digamma gammainc gammaincc lgamma multigammaln polygamma",
    "special.zeta": "zeta",
    "statistics": "bincount histogram median std var",
    "trigonometric": """
        acos acosh asin asinh atan atan2 atanh cos cosh deg2rad hypot rad2deg sin sinc sinh stanh tan tanh""",
})
COMPOSED = _by_name({
    "arithmetic": "positive pow true_divide",
    "attributes": "is_complex is_empty is_floating_point is_integer rank shape tolist",
    "complex": "view_as_complex view_as_real",
    "creation": "diagflat meshgrid one_hot range",
    "cumulative": "cumulative_trapezoid trapezoid",
    "indexing": """
        argwhere diagonal_scatter fill_diagonal_ fill_diagonal_tensor index_put masked_select nonzero
        scatter_add scatter_reduce select_scatter sequence_mask slice_scatter where where_""",
    "linalg": """
        cond householder_product lstsq lu lu_solve lu_unpack matrix_exp matrix_rank multi_dot norm normalize
        ormqr pca_lowrank pdist svd_lowrank vector_norm""",
    "manipulation": """
        atleast_1d atleast_2d atleast_3d block_diag broadcast_shape broadcast_shapes broadcast_tensors
        cartesian_prod cast_ chunk column_stack combinations dsplit dstack hsplit hstack multiplex permute
        repeat row_stack split split_with_sizes t_ tensor_split transpose_ unbind unstack vsplit vstack""",
    "random": """
        bernoulli_ cauchy_ exponential_ geometric_ log_normal log_normal_ normal_ randint_like random_
        standard_normal top_p_sampling uniform_""",
    "search": "msort topk",
    "sets": "unique_consecutive",
    "statistics": "corrcoef cov histogram_bin_edges histogramdd nanmedian nanquantile quantile",
})
MEMBERS = _by_name({
    "conversions": """
        T _to astype bfloat16 bool byte cdouble cfloat char complex128 complex64 contiguous cpu cuda double
        float float16 float32 float64 half int int16 int32 int64 int8 long mT new_empty new_full new_ones
        new_zeros pin_memory short to type_as uint8""",
    "kinds": """
        block coalesce cols crows dense_dim get_map_tensor get_selected_rows get_tensor grad_ grad_fn indices
        is_coalesced is_dist is_sparse is_sparse_coo is_sparse_csr is_tensor layout nnz num_shard placements
        process_mesh rows set_string_list set_tensor set_vocab sparse_dim to_dense to_sparse_coo to_sparse_csr
        type values""",
    "storage": "apply apply_ detach_ fill_ reconstruct_from_ resize_ set_ zero_",
})
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
    """The source of one table, a row of names for each module."""
    from textwrap import fill

    by_module: dict[str, list[str]] = {}
    for name, module in found.items():
        by_module.setdefault(module, []).append(name)
    lines = [f"{title} = _by_name({{"]
    for module, names in sorted(by_module.items()):
        line = f'    "{module}": "{" ".join(names)}",'
        text = fill(" ".join(names), 110, initial_indent=" " * 8, subsequent_indent=" " * 8)
        lines += [line] if len(line) <= 110 else [f'    "{module}": """', f'{text}""",']
    return "\n".join([*lines, "})"])


if __name__ == "__main__":
    _rewrite()
