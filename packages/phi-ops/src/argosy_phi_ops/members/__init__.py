"""Methods and properties of ``Tensor`` that are no functions, one module for each family.

Each module has a table ``MEMBERS`` of names to functions and properties; `declare.index.MEMBERS` says
which module has which name.
"""
