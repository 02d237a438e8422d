"""The conformance kit: ``python -m argosy_hwadapt.testing DEVICE`` checks any plug-in against the device contract.

Levels: 0 loading, 1 memory and order, 2 kernels, 5 the optional groups a device declares, 6 faults. Levels
3 (operators) and 4 (models) need the whole framework and come with it. ``--communicator NAME`` checks a communicator.
"""

from argosy_hwadapt.testing.ablation import Ablation, ablate
from argosy_hwadapt.testing.collectives import check_communicator
from argosy_hwadapt.testing.suite import Outcome, Subject, run_checks

__all__ = ["Ablation", "Outcome", "Subject", "ablate", "check_communicator", "run_checks"]
