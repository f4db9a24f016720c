"""A filter on this process's system calls and its children's, for what a sandbox's kernel answers differently from Linux."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2
"""PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP and SECCOMP_MODE_FILTER of linux/prctl.h and linux/seccomp.h."""
_CLOSE_RANGE = 436
"""Number of close_range, the same on all architectures."""
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000


def refuse_close_range() -> None:
    """Let close_range be unknown from now on, so that callers close one file at a time. Raises OSError.

    GLib before 2.78 asks for the range up to the largest unsigned number, gVisor refuses that as invalid, and GLib then starts no program.
    """
    if platform.machine() not in ("x86_64", "aarch64"):
        return
    program = b"".join(
        struct.pack("HBBI", *each)
        for each in (
            (_LOAD, 0, 0, 0),  # the call's number
            (_EQUAL, 0, 1, _CLOSE_RANGE),
            (_RETURN, 0, 0, _ERROR | errno.ENOSYS),
            (_RETURN, 0, 0, _ALLOW),
        )
    )
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    for call in ((_NO_NEW_PRIVILEGES, 1, 0, 0, 0), (_SECCOMP, _FILTER, ctypes.create_string_buffer(header, len(header)), 0, 0)):
        if libc.prctl(*call):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
