"""Which processor the figures are of: `python benchmarks/processor.py`.

Compiled code, BLAS and NumPy choose their instructions each for themselves. `make bench-avx2` measures as on a processor without AVX-512.
`make bench-other-processor` sets NUMBA_CPU_NAME=generic (no vector instructions beyond SSE2) and OPENBLAS_CORETYPE=Haswell (AVX2, no
AVX-512); NumPy's own loops keep the instructions of this processor.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np  # loads BLAS, which threadpoolctl then finds
import scipy.linalg  # noqa: F401 - SciPy has a BLAS of its own
from numba.core import config
from threadpoolctl import threadpool_info

SHOWN = ("sse4.2", "avx", "avx2", "fma", "avx512f", "avx512dq", "avx512vl", "neon", "sve")


def name() -> str:
    """The name that the processor gives itself."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def features() -> list[str]:
    """The vector instructions that it has."""
    found = llvm.get_host_cpu_features()
    return [feature for feature in SHOWN if found.get(feature)]


def describe() -> str:
    """Three lines: the processor, what compiled code and BLAS use of it, and the versions."""
    blas = sorted({f"{library['internal_api']} {library.get('architecture', '')}".strip() for library in threadpool_info()})
    compiled = config.CPU_NAME or llvm.get_host_cpu_name()
    return (
        f"Processor: {name()} ({llvm.get_host_cpu_name()}), {os.cpu_count()} cores; {', '.join(features()) or 'features unknown'}\n"
        f"Used: compiled code for {compiled}; {', '.join(blas)}; load {os.getloadavg()[0]:.1f}\n"
        f"Python {platform.python_version()}, NumPy {np.__version__}"
    )


if __name__ == "__main__":
    print(describe())
