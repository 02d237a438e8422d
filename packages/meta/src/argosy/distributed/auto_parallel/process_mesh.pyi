"""Written by ``python -m argosy.api.stubs``."""

from argosy_autoparallel.mesh import ProcessMesh as ProcessMesh
