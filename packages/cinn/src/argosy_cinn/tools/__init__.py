"""What people look at: explanations, dumps, replays, measurements."""
