"""Arrays beside memory that cannot be touched: code that reads or writes outside of them ends the process."""

import ctypes
import mmap

import numpy as np

SIDES = ("before", "behind")
_NOBODY = 0  # PROT_NONE


def guarded(array, side):
    """A copy with nothing ``before`` its first element, or nothing ``behind`` its last one. As it is where it is not
    contiguous, empty, or the system has no such memory."""
    if not (array.flags.c_contiguous and array.nbytes and hasattr(mmap, "MAP_PRIVATE")):
        return array
    page = mmap.PAGESIZE
    room = -(-array.nbytes // page) * page
    memory = mmap.mmap(-1, room + 2 * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for place in (start, start + page + room):
        assert protect(place, page, _NOBODY) == 0, ctypes.get_errno()
    offset = page if side == "before" else page + room - array.nbytes
    made = np.frombuffer(memory, np.uint8, array.nbytes, offset).view(array.dtype).reshape(array.shape)
    made[...] = array
    return made
