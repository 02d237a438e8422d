"""Parity with the real wheel of PaddlePaddle: the same calls in both, compared through committed records."""
