"""Where Paddle has helpers of older data sets: :mod:`.common`; the data sets are in ``vision``, ``text``, ``audio``."""
