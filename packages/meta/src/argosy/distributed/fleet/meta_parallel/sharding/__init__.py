"""Where Paddle has optimizers of split states and gradients."""
