"""Causal attention forward and backward, float32, head size 64, 1 x 6 heads of 2048 tokens: see `attention`."""

from __future__ import annotations

from attention import main

if __name__ == "__main__":
    main("attention_long", (1, 6, 2048))
