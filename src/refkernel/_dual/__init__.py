"""The quadratic programme behind every classifier here, and the one solver for it. It uses only NumPy and numba."""
