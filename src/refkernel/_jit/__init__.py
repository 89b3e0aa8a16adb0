"""numba's ``njit`` for this package: cached, interpreted while that is faster than compiling, and never silent for long.

Compiling takes numba 0.1 to 1 s for each function, whatever it is called with. A first fit of a hundred rows needs a few milliseconds
of plain Python instead. A function that says so is therefore interpreted until that has cost about as much as compiling it.
Interpreted and compiled code give the same bits: a function for which that is not true (``fastmath``) must not ask for it.
Parts of one jitted function can be plain functions, marked by numba's ``register_jitable``: they are compiled with it.
"""

from numba.extending import register_jitable

from .compiler import DRIVER, LOOP, njit

__all__ = ["DRIVER", "LOOP", "njit", "register_jitable"]
