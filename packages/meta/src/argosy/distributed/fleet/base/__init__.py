"""Where Paddle has the places of ranks in a job: :mod:`.topology`."""
