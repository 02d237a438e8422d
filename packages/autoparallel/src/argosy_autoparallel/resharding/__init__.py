"""Changing layouts: what a change costs, the cheapest way of steps, and the communication that makes each step."""
