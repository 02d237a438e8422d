"""The CPU as a device: host memory, native kernels, worker threads and what the processor can do."""
