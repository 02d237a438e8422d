"""What is one number, not several, among the settings of a layer: an integer of Python or of numpy."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Integral = int
else:
    from numbers import Integral

__all__ = ["Integral"]
