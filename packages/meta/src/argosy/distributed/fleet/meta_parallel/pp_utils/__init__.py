"""Parts of models that are run forward and backward one by one."""
