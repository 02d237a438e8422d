"""Pipelines: a model cut into stages, whose microbatches ranks compute by the list of a schedule."""
