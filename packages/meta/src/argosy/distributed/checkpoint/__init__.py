"""Checkpoints of distributed tensors: every rank writes its parts, any other mesh reads them.

A folder holds one file ``<rank>_<id>.<save>.safetensors`` for each rank and one ``<id>.metadata.json`` that says where
each part of each tensor is, and makes the save the checkpoint ``id``. See ``saving``, ``committing`` and ``loading``.
"""
