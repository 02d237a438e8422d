"""Pipelines: the order in which ranks run the stages of a model for the microbatches of a step."""
