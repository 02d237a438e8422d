"""Graphs of Paddle's older programs: names that libraries import beside what they use."""

from argosy.absent import absent_names

_INSTEAD = "programs are PIR; jit.to_static and static.Program make them"
_get = absent_names(__name__, "argosy.framework", dict.fromkeys(("Graph", "IrGraph"), _INSTEAD))

Graph, IrGraph = _get("Graph"), _get("IrGraph")
