"""The program that a launched browser begins as: it exchanges the pipe to Playwright's driver for one to exact, then becomes the browser.

It runs as a script of an interpreter without packages: standard library only. Its arguments are the name of an abstract socket at which
exact listens, whether the browser gets a separate network namespace (`apart`) if this user may make one, and the browser's command. The
driver writes to descriptor 3 and reads from descriptor 4, as browsers expect it.

The namespace has a loopback and nothing else. A process that stays in it opens ports there, which exact asks for and listens at: they are
the browser's only way out.
"""

import array
import os
import socket
import struct
import sys
from pathlib import Path

_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_SET_FLAGS, _UP = 0x8914, 0x41
"""The request that sets the flags of a network interface, and the flags of one that is up."""
_NULL = "/dev/null"


def main(name: str, network: str, *command: str) -> None:
    """Hand the driver's ends of the pipe over, take the browser's ends for them, and run the browser."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.connect("\0" + name)
        is_apart = network == "apart" and _forked(_leave_network) == 0 and _leave_network() == 0
        line.sendmsg([b"1" if is_apart else b"0"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [3, 4]))])
        _, ancillary, _, _ = line.recvmsg(1, socket.CMSG_SPACE(8))
        if is_apart:
            _forked(lambda: 0 if os.fork() else _open_ports(line))
    ends = array.array("i")
    for _, _, data in ancillary:
        ends.frombytes(data)
    if len(ends) != 2:
        sys.exit("exact is gone")
    os.dup2(ends[0], 3)
    os.dup2(ends[1], 4)
    os.execv(command[0], command)


def _forked(part) -> int:  # type: ignore[no-untyped-def]
    """Run a function in a separate process. Return the exit status that it returns."""
    if child := os.fork():
        return os.waitpid(child, 0)[1]
    os._exit(part())


def _leave_network() -> int:
    """Move this process to a new network namespace. Return 0, or 1 if this user may not make one."""
    import ctypes
    import fcntl  # which Windows does not have

    unshare = ctypes.CDLL(None).unshare
    user, group = os.getuid(), os.getgid()
    try:
        if unshare(_NEW_NETWORK):
            if unshare(_NEW_USER | _NEW_NETWORK):
                return 1
            for file, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
                Path(f"/proc/self/{file}").write_text(text, "ascii")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))
    except OSError:
        return 1
    return 0


def _open_ports(line: socket.socket) -> int:
    """Open a port for each byte that exact sends, and hand it over, until exact is gone."""
    kept = line.fileno()
    null = os.open(_NULL, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    os.closerange(3, kept)
    os.closerange(kept + 1, 256)
    while line.recv(1):
        with socket.create_server(("127.0.0.1", 0), backlog=128) as port:
            line.sendmsg([b"\0"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [port.fileno()]))])
    return 0


if __name__ == "__main__":
    main(*sys.argv[1:])
