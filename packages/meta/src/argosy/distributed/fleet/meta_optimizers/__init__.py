"""Where Paddle has optimizers of split models; :mod:`argosy.distributed.fleet.absent` says what to use."""
