"""The high-level interface: ``Model``, its callbacks, and descriptions of layers."""
