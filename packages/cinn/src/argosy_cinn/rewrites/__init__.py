"""The rules of `argosy_cinn.rewrites.simplify`, one for each primitive."""
