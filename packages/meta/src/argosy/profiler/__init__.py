"""Where the time goes: `Profiler` records eager operators, compiled programs kernel by kernel, and what users mark.

Read in this order: ``states`` (when to record), ``recording`` (what is recorded), ``profiler``, ``trace`` (files for
Chrome and Perfetto), ``statistics`` (tables).
"""

from argosy.api import lazy_names

__getattr__, __dir__ = lazy_names(__name__, globals())
