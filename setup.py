"""The kernels in C, compiled for three generations of processors; everything else is in pyproject.toml.

Without a C compiler the package is installed without them and uses PyTorch alone. Threads are PyTorch's own: OpenMP is
compiled against and not linked, so that the one PyTorch has loaded serves.
"""

from setuptools import Extension, setup

FLAGS = [
    "-std=gnu11",
    "-O3",
    "-fopenmp",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-tree-pre",  # it puts branches into loops that are to become vector instructions
    "-falign-loops=32",  # or the speed of a loop depends on how much code is before it
]
PROCESSORS = {"_kernels": [], "_kernels_avx2": ["-march=x86-64-v3"], "_kernels_avx512": ["-march=x86-64-v4"]}

setup(
    ext_modules=[
        Extension(
            f"equipoise.native.{name}",
            sources=[f"equipoise/native/{part}.c" for part in ("boxes", "inputs", "losses", "norms", "scaling")],
            depends=["equipoise/native/kernels.h"],
            extra_compile_args=FLAGS + processor,
            optional=True,
        )
        for name, processor in PROCESSORS.items()
    ]
)
