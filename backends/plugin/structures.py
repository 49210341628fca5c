"""The structures with which the native runtime requests a compilation: those of `backends/native/pjrt/program.h`."""

from __future__ import annotations

import ctypes


class CompileRequest(ctypes.Structure):
    """A program, in a format that PJRT names: `mlir` is a portable artifact, bytecode or text."""

    _fields_ = (
        ("code", ctypes.c_void_p),
        ("code_size", ctypes.c_size_t),
        ("format", ctypes.c_void_p),
        ("format_size", ctypes.c_size_t),
        ("num_replicas", ctypes.c_int64),
        ("num_partitions", ctypes.c_int64),
        ("devices", ctypes.c_char_p),
        ("options", ctypes.c_char_p),
    )


class SlotType(ctypes.Structure):
    """The type and shape of an argument or result."""

    _fields_ = (("type", ctypes.c_int32), ("rank", ctypes.c_int32), ("dims", ctypes.POINTER(ctypes.c_int64)))


class PieceType(ctypes.Structure):
    """How devices hold an argument or result of a program for several devices."""

    _fields_ = (
        ("is_whole", ctypes.c_int32),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("begins", ctypes.POINTER(ctypes.c_int64)),
    )


class CompileReply(ctypes.Structure):
    """A compiled program: the address of its machine code, its arguments and its results."""

    _fields_ = (
        ("handle", ctypes.c_uint64),
        ("entry", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("arena_size", ctypes.c_size_t),
        ("arena_alignment", ctypes.c_size_t),
        ("num_arguments", ctypes.c_size_t),
        ("num_results", ctypes.c_size_t),
        ("slots", ctypes.POINTER(SlotType)),
        ("donated", ctypes.POINTER(ctypes.c_uint8)),
        ("aliases", ctypes.POINTER(ctypes.c_int32)),
        ("name", ctypes.c_char_p),
        ("fingerprint", ctypes.c_char_p),
        ("generated_code_size", ctypes.c_int64),
        ("constant_size", ctypes.c_int64),
        ("flops", ctypes.c_double),
        ("transcendentals", ctypes.c_double),
        ("bytes_accessed", ctypes.c_double),
        ("pieces", ctypes.POINTER(PieceType)),
        ("is_shared", ctypes.c_int32),
        ("exchanges", ctypes.c_int32),
        ("has_device", ctypes.c_int32),
        ("shardings", ctypes.c_char_p),
        ("transfers", ctypes.c_char_p),
        ("layouts", ctypes.c_char_p),
    )


COMPILE = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.POINTER(CompileRequest), ctypes.POINTER(CompileReply), ctypes.c_void_p
)
TRACE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint64, ctypes.POINTER(CompileReply), ctypes.c_void_p)
OPTIONS = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_uint64)
SERIALIZE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p)
