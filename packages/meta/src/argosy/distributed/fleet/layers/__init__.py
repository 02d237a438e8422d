"""Where Paddle has the layers of tensor parallelism: :mod:`.mpu`."""
