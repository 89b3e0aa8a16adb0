"""The quadratic programme behind every classifier here, and the one solver for it. Knows NumPy and numba only."""
