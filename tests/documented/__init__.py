"""The examples in the documentation of Paddle's public API, run with argosy in its place; see ``refresh.py``."""
