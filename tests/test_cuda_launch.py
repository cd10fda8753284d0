"""How a CUDA kernel is launched, without a GPU: what the driver is asked."""

import ctypes
from types import SimpleNamespace

import pytest
import torch

from equipoise.native import cuda


class Driver:
    """Writes down which of its functions was called, with which grid, threads, stream, and attributes."""

    def cuLaunchKernel(self, kernel, x, y, z, threads, _y, _z, shared, stream, arguments, extra):
        self.asked = "plain", (x, y, z), threads, stream.value, []
        return 0

    def cuLaunchKernelEx(self, launch, kernel, arguments, extra):
        given = ctypes.cast(launch, ctypes.POINTER(cuda._Launch)).contents
        attributes = [(given.attributes[i].id, given.attributes[i].value) for i in range(given.count)]
        grid = given.grid_x, given.grid_y, given.grid_z
        self.asked = "extended", grid, given.block_x, given.stream, attributes
        return 0


@pytest.mark.parametrize(
    ("early", "may_be", "way", "attributes"),
    [(True, True, "extended", [(6, 1)]), (True, False, "plain", []), (False, True, "plain", [])],
)
def test_only_a_gpu_that_can_is_asked_to_start_early(early, may_be, way, attributes, monkeypatch):
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(cuda_stream=7))
    program = cuda.Program.__new__(cuda.Program)
    program._driver, program._kernels, program._may_be_early = Driver(), {"one": ctypes.c_void_p(1)}, may_be
    program.launch("one", (5, 3), 128, 4, early=early)
    assert program._driver.asked == (way, (5, 3, 1), 128, 7, attributes)


def test_structures_are_as_large_as_those_of_the_driver():
    """CUlaunchAttribute and CUlaunchConfig of cuda.h on 64 bits."""
    assert (ctypes.sizeof(cuda._Attribute), cuda._Attribute.value.offset) == (72, 8)
    assert (ctypes.sizeof(cuda._Launch), cuda._Launch.stream.offset, cuda._Launch.count.offset) == (56, 32, 48)
