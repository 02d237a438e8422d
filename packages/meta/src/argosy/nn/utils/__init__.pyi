"""Written by ``python -m argosy.api.stubs``."""

from argosy.nn.utils.clipping import clip_grad_norm_ as clip_grad_norm_
from argosy.nn.utils.clipping import clip_grad_value_ as clip_grad_value_
from argosy.nn.utils.vectors import parameters_to_vector as parameters_to_vector
from argosy.nn.utils.weight_normalization import remove_weight_norm as remove_weight_norm
from argosy.nn.utils.spectral_normalization import spectral_norm as spectral_norm
from argosy.nn.utils.vectors import vector_to_parameters as vector_to_parameters
from argosy.nn.utils.weight_normalization import weight_norm as weight_norm
