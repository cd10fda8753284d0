"""What `fuzz_kernels.py` draws its calls from: odd tensors, ways to call, losses and norms."""
