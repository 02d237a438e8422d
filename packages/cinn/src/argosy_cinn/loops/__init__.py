"""The code of loop nests: expressions of their elements as vectors, and the loops around them."""
