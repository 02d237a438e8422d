"""Python's control flow over tensors, captured: functions rewritten so that ``if``, ``while`` and ``for`` on traced
tensors become operations with regions. On Python values they stay what they are."""
