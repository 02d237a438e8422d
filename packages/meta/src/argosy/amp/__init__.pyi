"""Written by ``python -m argosy.api.stubs``."""

from argosy.amp.scaler import GradScaler as _own_AmpScaler
from argosy.amp.scaler import GradScaler as GradScaler
from argosy.amp.decoration import decorate as _own_amp_decorate
from argosy.amp.casting import auto_cast as _own_amp_guard
from argosy.amp.casting import auto_cast as auto_cast
from argosy.amp.casting import auto_cast as _own_autocast
from argosy.amp.lists import black_list as black_list
from argosy.amp import debugging as debugging
from argosy.amp.decoration import decorate as decorate
from argosy.amp.support import get_autocast_cpu_dtype as get_autocast_cpu_dtype
from argosy.amp.support import get_autocast_dtype as get_autocast_dtype
from argosy.amp.support import get_autocast_gpu_dtype as get_autocast_gpu_dtype
from argosy.amp.support import is_autocast_enabled as is_autocast_enabled
from argosy.amp.support import is_bfloat16_supported as is_bfloat16_supported
from argosy.amp.support import is_float16_supported as is_float16_supported
from argosy.amp.lists import white_list as white_list
AmpScaler = _own_AmpScaler
amp_decorate = _own_amp_decorate
amp_guard = _own_amp_guard
autocast = _own_autocast
