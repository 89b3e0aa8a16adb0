"""Print the processor features that NumPy uses here and that NPY_DISABLE_CPU_FEATURES can turn off; with arguments, those that begin so."""

import sys

from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

if __name__ == "__main__":
    beginnings = tuple(sys.argv[1:]) or ""
    print(*(feature for feature in __cpu_dispatch__ if __cpu_features__.get(feature) and feature.startswith(beginnings)))
