"""Settings of the packages' benchmarks: one thread, one core, and compiled objects of this run alone."""

from __future__ import annotations

import os
import tempfile

_folder = tempfile.TemporaryDirectory()
os.environ["ARGOSY_CACHE_DIR"] = _folder.name  # kept until the process ends: a warm cache would hide compilation
os.environ["ARGOSY_NUM_THREADS"] = "1"
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
