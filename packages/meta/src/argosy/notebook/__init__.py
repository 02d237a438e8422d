"""What notebooks show of tensors, layers and programs: HTML without scripts or links, and curves by matplotlib."""
