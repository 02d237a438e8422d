"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.plans import ColWiseParallel as ColWiseParallel
from argosy.distributed.plans import ConvParallel as ConvParallel
from argosy.distributed.plans import PrepareLayerInput as PrepareLayerInput
from argosy.distributed.plans import PrepareLayerOutput as PrepareLayerOutput
from argosy.distributed.plans import RowWiseParallel as RowWiseParallel
from argosy.distributed.plans import SequenceParallelBegin as SequenceParallelBegin
from argosy.distributed.plans import SequenceParallelDisable as SequenceParallelDisable
from argosy.distributed.plans import SequenceParallelEnable as SequenceParallelEnable
from argosy.distributed.plans import SequenceParallelEnd as SequenceParallelEnd
