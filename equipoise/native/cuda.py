"""CUDA source, compiled when it is first needed by the NVRTC that comes with PyTorch, and its kernels."""

from __future__ import annotations

import ctypes
import hashlib
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

from ..core.files import cache_folder, sealed, unsealed, write_whole

OPTIONS = ("--std=c++17",)
FIRST_EARLY = (9, 0)  # compute capability from which on a kernel may start before the one before it has ended
_EARLY = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute of cuda.h."""

    _fields_ = (("id", ctypes.c_int), ("_pad", ctypes.c_int), ("value", ctypes.c_int), ("_rest", ctypes.c_char * 60))


class _Launch(ctypes.Structure):
    """CUlaunchConfig of cuda.h."""

    _fields_ = (
        *((name, ctypes.c_uint) for name in ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "shared")),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint),
    )


class CannotCompile(RuntimeError):
    """There is no NVRTC, or it refuses the source."""


class Program:
    """The kernels `names` of a source, instances of templates by the expression that names them."""

    def __init__(self, source: Path, names: Sequence[str], device: torch.device) -> None:
        major, minor = torch.cuda.get_device_capability(device)
        code, symbols = _compiled(source.read_bytes(), tuple(names), f"sm_{major}{minor}")
        self._may_be_early = (major, minor) >= FIRST_EARLY
        self._driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        module = ctypes.c_void_p()
        with torch.cuda.device(device):
            torch.cuda.current_stream().synchronize()  # there is a context now
            self._check(self._driver.cuModuleLoadData(ctypes.byref(module), code))
            self._kernels = {name: self._kernel(module, symbol) for name, symbol in zip(names, symbols, strict=True)}

    def _kernel(self, module: ctypes.c_void_p, symbol: bytes) -> ctypes.c_void_p:
        kernel = ctypes.c_void_p()
        self._check(self._driver.cuModuleGetFunction(ctypes.byref(kernel), module, symbol))
        return kernel

    def launch(self, name: str, grid: tuple[int, ...], threads: int, *arguments: object, early: bool = False) -> None:
        """On the current stream; tensors are handed over as pointers, whole numbers as int, the rest as it is.

        `early`: its thread blocks may be set up while the kernel before it on this stream still runs. It must wait for
        that one's end by itself (`griddepcontrol.wait`) before it reads or writes memory.
        """
        values = [_argument(value) for value in arguments]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        kernel, blocks, stream = self._kernels[name], (*grid, 1, 1)[:3], torch.cuda.current_stream().cuda_stream
        if early and self._may_be_early:
            attribute = _Attribute(_EARLY, 0, 1)
            launch = _Launch(*blocks, threads, 1, 1, 0, stream, ctypes.pointer(attribute), 1)
            result = self._driver.cuLaunchKernelEx(ctypes.byref(launch), kernel, pointers, None)
        else:  # drivers of older GPUs may lack the other
            result = self._driver.cuLaunchKernel(
                kernel, *blocks, threads, 1, 1, 0, ctypes.c_void_p(stream), pointers, None
            )
        self._check(result)

    def _check(self, result: int) -> None:
        if result:
            text = ctypes.c_char_p()
            self._driver.cuGetErrorString(result, ctypes.byref(text))
            raise RuntimeError(f"CUDA: {(text.value or b'unknown error').decode()}")


def _argument(value: object) -> ctypes._SimpleCData | ctypes.Structure:
    if isinstance(value, Tensor):
        return ctypes.c_void_p(value.data_ptr())
    if isinstance(value, int):
        return ctypes.c_int(value)
    assert isinstance(value, ctypes._SimpleCData | ctypes.Structure), value
    return value


def _compiled(source: bytes, names: tuple[str, ...], architecture: str) -> tuple[bytes, list[bytes]]:
    """Machine code and the kernels' symbols, from the cache where it has them."""
    nvrtc = _nvrtc()
    version = [ctypes.c_int(), ctypes.c_int()]
    nvrtc.nvrtcVersion(*map(ctypes.byref, version))
    asked = repr((source, names, architecture, OPTIONS, [v.value for v in version]))
    kept = cache_folder() / "kernels" / hashlib.sha256(asked.encode()).hexdigest()[:32]
    known = unsealed(kept.read_bytes()) if kept.exists() else None
    if known is None:
        code, symbols = _compile(nvrtc, source, names, architecture)
        _keep(kept, b" ".join(symbols) + b"\n" + code)
        return code, symbols
    first, code = known.split(b"\n", 1)
    return code, first.split()


def _keep(path: Path, content: bytes) -> None:
    with suppress(OSError):  # a folder that cannot be written to costs some seconds each time
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, sealed(content))


def _nvrtc() -> ctypes.CDLL:
    assert torch.version.cuda is not None
    major = torch.version.cuda.split(".")[0]
    names = [f"nvrtc64_{major}0_0.dll"] if sys.platform == "win32" else [f"libnvrtc.so.{major}", "libnvrtc.so"]
    packages = Path(torch.__file__).parents[1] / "nvidia"
    for name in (*names, *map(str, packages.glob(f"*/lib/libnvrtc.so.{major}"))):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise CannotCompile(f"PyTorch for CUDA {torch.version.cuda} came without NVRTC, which compiles CUDA source")


def _compile(nvrtc: ctypes.CDLL, source: bytes, names: tuple[str, ...], architecture: str) -> tuple[bytes, list[bytes]]:
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 0, None, None)
    try:
        for name in names:
            nvrtc.nvrtcAddNameExpression(program, name.encode())
        options = [f"--gpu-architecture={architecture}".encode(), *(option.encode() for option in OPTIONS)]
        failed = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        if failed:
            raise CannotCompile(_text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).decode())
        return _text(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program), [
            _lowered(nvrtc, program, name) for name in names
        ]
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _text(size_of: ctypes._NamedFuncPointer, get: ctypes._NamedFuncPointer, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    size_of(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    get(program, text)
    return text.raw


def _lowered(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, name: str) -> bytes:
    symbol = ctypes.c_char_p()
    nvrtc.nvrtcGetLoweredName(program, name.encode(), ctypes.byref(symbol))
    assert symbol.value is not None
    return symbol.value
