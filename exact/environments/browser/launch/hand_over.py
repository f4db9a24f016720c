"""The program that a launched browser begins as: it exchanges the pipe to Playwright's driver for one to exact, then becomes the browser.

It runs as a script of an interpreter without packages: standard library only. Its arguments are the name of an abstract socket at which
exact listens, and the browser's command. The driver writes to descriptor 3 and reads from descriptor 4, as browsers expect it.
"""

import array
import os
import socket
import sys


def main(name: str, *command: str) -> None:
    """Hand the driver's ends of the pipe over, take the browser's ends for them, and run the browser."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.connect("\0" + name)
        line.sendmsg([b"\0"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [3, 4]))])
        _, ancillary, _, _ = line.recvmsg(1, socket.CMSG_SPACE(8))
    ends = array.array("i")
    for _, _, data in ancillary:
        ends.frombytes(data)
    if len(ends) != 2:
        sys.exit("exact is gone")
    os.dup2(ends[0], 3)
    os.dup2(ends[1], 4)
    os.execv(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
