"""Programs that Paddle 3 exported: ``<path>.json`` (its IR) and ``<path>.pdiparams`` (the weights), read and captured
anew with argosy's operators. Reading executes nothing from the files."""
