"""Machine code in the process: object files, linked by ORC. All functions may be called from any thread."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from argosy_cinn.call_once import LLVM
from argosy_cinn.runtime.jit import CodegenError, initialized_llvm
from argosy_cinn.runtime.objects import members


class Library:
    """Machine code linked into the process; it lives as long as this object.

    Attributes: ``code`` (the object file's bytes), ``cache_hit`` (whether it came from the cache).
    """

    def __init__(self, addresses: Mapping[str, int], tracker: object, code: bytes, cache_hit: bool) -> None:
        self._addresses = dict(addresses)
        self._tracker = tracker  # unloads the code when collected
        self.code = code
        self.cache_hit = cache_hit

    def address(self, name: str) -> int:
        """The address of an exported function."""
        if name not in self._addresses:
            raise LookupError(f"library exports {', '.join(sorted(self._addresses))}, not {name!r}")
        return self._addresses[name]

    @property
    def exports(self) -> tuple[str, ...]:
        """Names that `address` knows."""
        return tuple(self._addresses)


class _Linker:
    """LLVM's linker, replaced after `PER_LINKER` libraries. It keeps notes of each library that it ever linked, some
    kilobytes, so that it has to go for them to go; libraries hold the one that they came from."""

    def __init__(self) -> None:
        self.current: Any = None
        self._left = 0
        self._names = itertools.count()

    def next_linker(self) -> tuple[Any, str]:
        """A linker for one more library, and the library's name. To be called by who holds `LLVM`."""
        if not self._left:
            self.current, self._left = _new_linker(), PER_LINKER
        self._left -= 1
        return self.current, f"argosy.{next(self._names)}"


PER_LINKER = 64
"""Libraries that one of LLVM's linkers links. So many that are gone may leave their notes behind for one that lives."""
linker = _Linker()


def _new_linker() -> Any:
    llvm = initialized_llvm()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return llvm.create_lljit_compiler(
        target.create_target_machine(opt=2, reloc="pic", codemodel="small"),
        use_jit_link=True,  # the older linker aborts the process where sections come to lie over 2 GiB apart
    )


def link(
    code: bytes,
    exports: Sequence[str],
    *,
    symbols: Mapping[str, int] | None = None,
    cache_hit: bool = False,
) -> Library:
    """Link an object file, or an archive of several, into the process. ``symbols`` gives addresses of functions outside
    of it."""
    llvm = initialized_llvm()
    try:
        with LLVM:
            builder = llvm.JITLibraryBuilder().add_current_process()
            for data in members(code):
                builder.add_object_img(data)
            for name in exports:
                builder.export_symbol(name)
            for name, address in (symbols or {}).items():
                builder.import_symbol(name, address)
            tracker = builder.link(*linker.next_linker())
            addresses = {name: tracker[name] for name in exports}
    except RuntimeError as error:
        raise CodegenError(f"generated code cannot be linked: {error}", "") from error
    return Library(addresses, tracker, code, cache_hit)
