"""Which values get memory (`cost`), and which are computed in one loop nest (`groups`, `grids`)."""
