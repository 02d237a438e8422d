"""Where argosy differs from the wheel on purpose or for now, each with its reason.

Keys of DIFFERENCES are case ids or patterns of :mod:`fnmatch` (brackets stand for themselves). A listed case that
agrees fails the suite, so that the list cannot rot.
"""

from __future__ import annotations

__all__ = ["ABSENT", "DIFFERENCES", "SIGNATURES", "VISION"]

_FLOAT32_ARGUMENTS = "the wheel rounds scalar arguments to float32 before a float64 computation"
_COMPLEX_TO_REAL = "the wheel drops the imaginary part in silence; argosy refuses"
_BY_DIVISION = "the wheel divides the result by the factor, which gives NaN where a factor is 0 or NaN"
_NAN_EXTREMUM = "the wheel's gradient of an extremum that is NaN is NaN everywhere"
_EMPTY_EXTREMUM = "the wheel gives uninitialised memory for an extremum over no elements"
_INTEGER_VARIANCE = "the wheel computes the variance of integers in integers and loses the fractions"
_WRONG_GRADIENT = "the wheel's gradient is not the derivative: finite differences give argosy's"
_OVERLAP = "the wheel's gradient of a view with overlapping windows lacks all terms but one"
_CONJUGATE = "the wheel's gradient lacks the conjugation that its other gradients of complex numbers have"

DIFFERENCES: dict[str, str] = {
    "stanh(float64:3x4[-3,3])": _FLOAT32_ARGUMENTS,
    "nn.functional.selu(float64:3x4[-4,4])": _FLOAT32_ARGUMENTS,
    "nn.functional.hardsigmoid(float64:3x4[-4,4])": _FLOAT32_ARGUMENTS,
    "sqrt(float32:8{*": "the wheel's square root of infinity is NaN",
    "abs(float32:8{*": "the wheel's gradient of abs at infinity is NaN",
    "sinc(float32:8{*": "the wheel's sinc of NaN is 1",
    "logit(float32:4{-0.5,0.2,0.7,1.5})": "the wheel's gradient outside the domain is NaN, the formula's is finite",
    "nn.functional.log_softmax(float32:2x3[-500,500])": "the wheel clips logarithms of probabilities at -64",
    "nn.functional.cross_entropy(float32:4x3[-80,80], *": "the wheel clips logarithms of probabilities at -64",
    "logaddexp(float32:6{*": "the wheel gives NaN for two infinities",
    "divide(complex64:3[1,4], bool:3[1,4])": "complex numbers over zero: NaN in the wheel, infinity in argosy",
    "pow(int64:4[1,5], 0.5)": "the wheel truncates the root to an integer, but not in the operator form",
    "Tensor.__mod__(*, (1+2j))": "the wheel computes a remainder of complex numbers, which has no meaning",
    "Tensor.__truediv__(bool:3[1,6], True)": "the wheel divides booleans into booleans",
    "lerp(float*, float*, float*)": "the wheel does not differentiate with respect to the weight",
    "full_like(*, (1+2j))": _COMPLEX_TO_REAL,
    "full([2], (1+2j), 'float*": _COMPLEX_TO_REAL,
    "full([2], (1+2j), 'int64')": _COMPLEX_TO_REAL,
    "prod(float32:3{nan,1.0,2.0})": _BY_DIVISION,
    "prod(float32:2x2{0.0,2.0,3.0,0.0}, 0)": _BY_DIVISION,
    "prod(float32:3{0.0,2.0,3.0})": _BY_DIVISION,
    "max(float32:3{nan,1.0,2.0})": _NAN_EXTREMUM,
    "min(float32:3{nan,1.0,2.0})": _NAN_EXTREMUM,
    "amax(float32:3{nan,1.0,2.0})": _NAN_EXTREMUM,
    "amin(float32:3{nan,1.0,2.0})": _NAN_EXTREMUM,
    "am??(float32:0x3)": _EMPTY_EXTREMUM,
    "am??(float32:0x3, 0)": _EMPTY_EXTREMUM,
    "arg*(float32:0x3)": _EMPTY_EXTREMUM,
    "var(int*": _INTEGER_VARIANCE,
    "masked_fill(float32:2x3, bool:3, float32:(){2.0})": "the wheel does not differentiate with respect to the value",
    "transpose(float32:2x3, [0])": "the wheel takes a permutation of some of the axes",
    "Tensor.__setitem__(float32:2x3, [0, 0], float32:2x3)": "an overwritten write gets a gradient in the wheel",
    "Tensor.__bool__(float32:())": "in the wheel a negative number is false",
    "atan2(int64:2x1*": "the wheel computes angles of integers in float32 and calls them float64",
    "atan2(int??:6*": "the wheel computes angles of integers in float32 and calls them float64",
    "median(float32:3{nan,1.0,2.0})": "the gradient of a median that is NaN goes to the NaN in the wheel",
    "mean(bool:2x4*": "the wheel's mean of booleans is a boolean; argosy refuses",
    "linalg.cholesky_solve(*": _WRONG_GRADIENT,
    "linalg.eigvalsh(float32:2x2x2*": _WRONG_GRADIENT,
    "linalg.eigh(float32:2x2x2*": _WRONG_GRADIENT,
    "linalg.pinv(float64:3x3*, hermitian=True)": "the wheel's gradient assumes that the perturbation is symmetric, too",
    "nn.functional.group_norm(float32:2x4x3x2, 4)": _WRONG_GRADIENT,
    "nn.functional.group_norm(float32:2x4x3x2, 1, epsilon=0.1)": _WRONG_GRADIENT,
    "nn.functional.group_norm(float32:2x3x2x4, 2, *": _WRONG_GRADIENT,
    "linalg.eig(float32:2x2x2*": _WRONG_GRADIENT,
    "sign(complex64:2x3)": "the wheel's gradient of z / |z| is 0",
    "pow(complex64:2x3, complex64:3)": _CONJUGATE,
    "pow(complex64:3, float32:3)": _CONJUGATE,
    "prod(complex64:2x3, 1)": _CONJUGATE,
    "Tensor.__pow__(float??:3[1,6], (1+2j))": _CONJUGATE,
    "Tensor.__pow__(complex64:3[1,6], True)": _CONJUGATE,
    "Tensor.__pow__(complex64:3[1,6], (1+2j))": _CONJUGATE,
    "nn.GaussianNLLLoss(*": "the wheel does not differentiate with respect to the variance",
    "optimizer.RAdam(learning_rate=0.1)": "the length of the average is a difference of nearly equal float32 numbers",
    "nn.*(input_size=3, hidden_size=4, num_layers=2, direction='bidirect')(*int64:2{2,5})": _WRONG_GRADIENT,
    "scripts.old_batch_norm(float32:2x3, False, trainable_statistics=True)": _WRONG_GRADIENT,
    "diagonal_scatter(float32:3x3, float32:3)": "the wheel does not differentiate with respect to the part put in",
    "Tensor.fill_diagonal_tensor(*": "the wheel does not differentiate with respect to the part put in",
    "as_strided(float32:6, [3, 3], [1, 1])": _OVERLAP,
    "unfold(float32:2x5x3, 1, 3, 1)": _OVERLAP,
    "index_put(float32:3x4!, (int64:3{0,2,0}*, False)": "an overwritten write gets a gradient in the wheel",
    "audio.functional.get_window(('tukey', 1.0), 7, False, 'float32')": "the wheel forgets the dtype of this window",
    "linalg.cholesky_inverse(*": "the wheel differentiates with respect to the triangle that is not read, too",
    "scripts.member_of('Bernoulli', 'entropy', (float32:3[0.1,0.9]))": _WRONG_GRADIENT,
    "scripts.divergence*('Geometric', *": "the wheel's is of one trial; a variable is as many as the mean of p says",
    "linalg.det(float32:2x2{*": "the wheel's gradient of a determinant of 0 is 0; argosy's is the adjugate",
    "linalg.matrix_exp(float32:3x3*": "the wheel computes in float32, argosy in float64",
    "nn.functional.cross_entropy(float64:4x3, float32:4x3*label_smoothing=0.4)": (
        "the wheel's gradient takes labels to add up to 1, which these float32 ones do to 3e-8"
    ),
    "nn.functional.interpolate(*size=[*mode='area'*'N*WC')": "the wheel takes channels last for channels first",
    "nn.functional.interpolate(float32:2x1x6, scale_factor=[0.3], mode='linear', *": _WRONG_GRADIENT,
    "scripts.sparse_turned(*, 'csr', '2')": "no gradient in the wheel on the way from rows to coordinates",
    "scripts.sparse_members(float32:2x2x2*, 'csr')": "the wheel says 2 sparse axes of a batch of matrices, which has 3",
    "scripts.sparse_pair('subtract', float32:2x3x4*, '3')": _WRONG_GRADIENT,
    "scripts.sparse_call('sum', float32:3x4*, 'csr', -1, 'float64', True)": "the wheel adds in float32, then converts",
    "scripts.sparse_call('sum', int32:2x2*, '2', 0)": "the wheel says int64, but its values are int32",
    "scripts.sparse_masked(float32:4x3, *, 'csr')": "the wheel reads beyond the tensor",
}

VISION: dict[str, str] = {
    "picture.affine-fill.0": "the wheel paints what lies outside of a picture black, whatever it is told",
    "picture.perspective-fill.0": "the wheel paints what lies outside of a picture black, whatever it is told",
    "picture.pad-number.0": "the wheel fills the first channel of a picture only",
}
"""Operations of ``tests/vision`` that differ, each with the reason."""

ABSENT: frozenset[str] = frozenset()
"""What the wheel has and argosy not yet; a name that arrives fails the suite until it is taken off."""

SIGNATURES: dict[str, str] = {
    "tensor.random.check_shape": "the classes of tensors are argosy's",
}
"""Targets (or patterns) that take their arguments in another way, each with the reason."""
