"""The rules of `argosy_cinn.simplify`, one for each primitive."""
