"""Where the time goes: `Profiler` records eager operators, compiled programs kernel by kernel, and what users mark.

Read in this order: ``states`` (when to record), ``recording`` (what is recorded), ``profiler``, ``trace`` (files for
Chrome and Perfetto), ``statistics`` (tables).
"""

from argosy.faces import face

_STATES = ("ProfilerState", "ProfilerTarget", "SortedKeys", "SummaryView", "TracerEventType", "make_scheduler")
_TABLE = {
    **{name: f"argosy.profiler.states:{name}" for name in _STATES},
    "Profiler": "argosy.profiler.profiler:Profiler",
    "RecordEvent": "argosy.profiler.recording:RecordEvent",
    **{
        name: f"argosy.profiler.trace:{name}"
        for name in ("export_chrome_tracing", "export_protobuf", "load_profiler_result")
    },
}

__all__ = sorted(_TABLE)
__getattr__, __dir__ = face(__name__, _TABLE, globals())
