"""``argosy.vision`` against recorded answers of the wheel; see ``refresh.py``."""
