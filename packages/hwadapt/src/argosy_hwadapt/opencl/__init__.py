"""OpenCL devices: the vendor's own library, found in installed wheels or on the system, driven by cffi."""
