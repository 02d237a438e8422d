"""Kernels for machines of work-groups: work-items in the place of lanes, groups in that of chunks."""
