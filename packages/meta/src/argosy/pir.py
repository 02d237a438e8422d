"""What Paddle calls ``pir``: in argosy the variables of a program being recorded are tensors, too."""

from argosy.faces import face

_TABLE = {"Value": "argosy.runtime:Tensor", "Program": "argosy.static:Program", "Block": "argosy.static.program:Block"}

__getattr__, __dir__ = face(__name__, _TABLE, globals())
