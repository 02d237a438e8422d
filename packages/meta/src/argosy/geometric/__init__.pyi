"""Written by ``python -m argosy.api.stubs``."""

from argosy.geometric.neighbourhoods import reindex_graph as reindex_graph
from argosy.geometric.neighbourhoods import reindex_heter_graph as reindex_heter_graph
from argosy.geometric.neighbourhoods import sample_neighbors as sample_neighbors
from argosy.geometric.messages import segment_max as segment_max
from argosy.geometric.messages import segment_mean as segment_mean
from argosy.geometric.messages import segment_min as segment_min
from argosy.geometric.messages import segment_sum as segment_sum
from argosy.geometric.messages import send_u_recv as send_u_recv
from argosy.geometric.messages import send_ue_recv as send_ue_recv
from argosy.geometric.messages import send_uv as send_uv
from argosy.geometric.neighbourhoods import weighted_sample_neighbors as weighted_sample_neighbors
