"""Become another program whose life is tied to the parent's. Run as a script by the launcher, never imported.

    python -I -S child.py PARENT_PID DEATH_SIGNAL UID:GID|- PROGRAM [ARGS…]

A separate step between fork and exec instead of `preexec_fn`, because Python code between fork and exec can deadlock
in a process that has threads (gRPC has many), and because the kernel forgets the death signal when the user changes:
here it is set last. The pid stays the same through every exec, so the caller's child is the program itself.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1
PARENT_GONE = 3


def main(arguments: list[str]) -> int:
    """Change user if asked, ask the kernel for `DEATH_SIGNAL` when the parent dies, then exec the program."""
    parent, death_signal, owner, *command = arguments
    if owner != "-":
        uid, gid = (int(part) for part in owner.split(":"))
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
    if os.getppid() != int(parent):
        return PARENT_GONE  # the parent died before the kernel knew of us
    os.execv(command[0], command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
