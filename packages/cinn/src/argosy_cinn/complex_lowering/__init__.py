"""Complex numbers as pairs of real ones: the pass, its rules, and the functions of a complex variable."""
