"""Checkpoints of distributed tensors: every rank writes its parts, any other mesh reads them.

A folder holds one file ``<rank>_<id>.safetensors`` for each rank and one ``<id>.metadata.json`` that says where each
part of each tensor is. See ``saving`` and ``loading``.
"""
