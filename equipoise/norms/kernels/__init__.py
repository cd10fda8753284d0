"""Normalization in one pass: by kernels in C on the CPU, in Triton on a GPU."""
