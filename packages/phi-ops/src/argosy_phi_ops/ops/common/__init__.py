"""What bodies of operators share: arguments, windows, loops, keys of subscripts."""
