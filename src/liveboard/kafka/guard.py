"""Starts a program that ends with the process that started it, whatever ends that one.

Run as `python guard.py PIPE LOCK COMMAND...`. PIPE and LOCK are open descriptors: PIPE reads a pipe whose
other end only the owner holds, LOCK is for the program alone. The program takes this process's place; a
child of it waits for the end of the pipe, which the kernel closes with the owner, and then kills the program.
(Linux's signal at the parent's death means the starting thread's, and other systems have none.)
"""

import os
import signal
import sys


def main() -> None:
    pipe, lock, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    program = os.getpid()
    if os.fork() == 0:
        os.chdir("/")
        for descriptor in (0, 1, 2, lock):
            os.close(descriptor)
        os.read(pipe, 1)
        if os.getppid() == program:
            os.kill(program, signal.SIGKILL)
        os._exit(0)
    os.close(pipe)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
