"""The dual problem and its solvers, Gaussian values, distances, linear algebra, threads and blocks: the only room with numba."""
