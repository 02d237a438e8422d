"""Written by ``python -m argosy.api.stubs``."""

from argosy.profiler.profiler import Profiler as Profiler
from argosy.profiler.states import ProfilerState as ProfilerState
from argosy.profiler.states import ProfilerTarget as ProfilerTarget
from argosy.profiler.recording import RecordEvent as RecordEvent
from argosy.profiler.states import SortedKeys as SortedKeys
from argosy.profiler.states import SummaryView as SummaryView
from argosy.profiler.states import TracerEventType as TracerEventType
from argosy.profiler.trace import export_chrome_tracing as export_chrome_tracing
from argosy.profiler.trace import export_protobuf as export_protobuf
from argosy.profiler.trace import load_profiler_result as load_profiler_result
from argosy.profiler.states import make_scheduler as make_scheduler
