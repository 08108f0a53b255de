"""Runs a function in a forked child and ends it at a chosen moment.

A moment is one of two things.

`Step(n)`: the child is killed with SIGKILL before its n-th system call that changes a file. What a
killed process leaves behind depends on nothing but which of those calls it made, so that every step
is one state of the disk, and two moments between the same two calls are the same moment. Drawn by
the clock, most moments would fall into arithmetic between two steps and repeat each other. The calls
are counted by the kernel (ptrace): nothing of ours is patched.

`Instant(seconds)`: the child gets SIGINT by the clock. An interrupt unwinds Python, so there it does
matter in which line it arrives.
"""

import ctypes
import os
import platform
import select
import signal
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

_CALLS = {  # <asm/unistd.h>: what changes files; open counts where it may create
    "x86_64": {
        "change": {1, 18, 20, 40, *range(74, 78), *range(82, 89), 258, *range(263, 267), 285, 296, 316, 326},
        "open": {2: 1, 257: 2},
    },
    "aarch64": {
        "change": {33, 34, 35, 36, 37, 38, 45, 46, 47, 64, 66, 68, 70, 71, 82, 83, 276, 285},
        "open": {56: 2},
    },
}
_TRACEME, _SYSCALL, _SETOPTIONS, _GET_SYSCALL_INFO = 0, 24, 0x4200, 0x420E
_TRACESYSGOOD, _EXITKILL = 1, 0x100000
_AT_SYSCALL = signal.SIGTRAP | 0x80

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Step:
    """Before the n-th call that changes a file, from 1; further than there are: never."""

    number: int


@dataclass(frozen=True)
class Instant:
    seconds: float


@dataclass(frozen=True)
class Ending:
    """How a child ended: its exit code, negative for a signal, and whether that was before its moment came."""

    code: int
    early: bool
    steps: int
    seconds: float


def traceable():
    """Why calls cannot be counted here; empty when they can."""
    if platform.system() != "Linux" or platform.machine() not in _CALLS:
        return f"no table of system calls for {platform.system()} on {platform.machine()}"
    ending = run(lambda _: os.close(os.open("/dev/null", os.O_WRONLY | os.O_CREAT)), Step(10**9))
    return "" if ending.steps >= 1 else "ptrace is not allowed here"


def run(work, moment=None):
    """Run `work` in a child until it ends or `moment` comes; its code is that of SystemExit, 99 for a fault.

    `work` is given a function to call last before the program under test: then the clock starts.
    """
    heard, ready = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    child = os.fork()
    if child == 0:
        _child(work, ready, isinstance(moment, Step))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.close(ready)
    if isinstance(moment, Step):
        begin = time.monotonic()
        steps, status = _counted(child, moment.number)
        early = steps < moment.number
    else:
        os.read(heard, 1)
        begin = time.monotonic()
        early = moment is None or _ends_within(child, moment.seconds)
        if not early:
            os.kill(child, signal.SIGINT)
        steps, status = 0, os.waitpid(child, 0)[1]
    os.close(heard)
    return Ending(os.waitstatus_to_exitcode(status), early, steps, time.monotonic() - begin)


def _child(work, ready, traced):
    code = 0

    def begin():
        os.write(ready, b".")
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if traced:
            _ptrace(_TRACEME, 0, 0, None)
            os.kill(os.getpid(), signal.SIGSTOP)
        work(begin)
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException as error:
        # An interrupt that came before the program had its first line is no fault of the program.
        code = 99
        if isinstance(error, KeyboardInterrupt) and not _inside(error, "main.py"):
            code = 130
        else:
            traceback.print_exc()
    finally:
        os._exit(code)


def _inside(error, name):
    return any(Path(frame.filename).name == name for frame in traceback.extract_tb(error.__traceback__))


def _ends_within(child, seconds):
    """Wait until the time has come or the child has ended; it is reaped by the caller in both cases."""
    handle = os.pidfd_open(child)
    ended, _, _ = select.select([handle], [], [], seconds)
    os.close(handle)
    return bool(ended)


def _counted(child, last):
    calls = _CALLS[platform.machine()]
    info = (ctypes.c_ubyte * 88)()
    steps, deliver = 0, 0
    _, status = os.waitpid(child, 0)
    _ptrace(_SETOPTIONS, child, 0, _TRACESYSGOOD | _EXITKILL)
    while os.WIFSTOPPED(status):
        if _ptrace(_SYSCALL, child, 0, deliver):
            break  # ptrace is not allowed, and the child not traced
        _, status = os.waitpid(child, 0)
        deliver = 0
        if os.WIFSTOPPED(status) and os.WSTOPSIG(status) != _AT_SYSCALL:
            deliver = os.WSTOPSIG(status)
        elif os.WIFSTOPPED(status):
            _ptrace(_GET_SYSCALL_INFO, child, len(info), ctypes.addressof(info))
            steps += _changes(bytes(info), calls)
            if steps == last:
                os.kill(child, signal.SIGKILL)
                _, status = os.waitpid(child, 0)
    return steps, status


def _changes(info, calls):
    """Whether a stop is the entry of a call that changes a file; the layout is struct ptrace_syscall_info."""
    if info[0] != 1:
        return False
    number, *arguments = (int.from_bytes(info[at : at + 8], "little") for at in range(24, 80, 8))
    if number in calls["open"]:
        return bool(arguments[calls["open"][number]] & os.O_CREAT)
    return number in calls["change"]


def _ptrace(request, child, address, data):
    _libc.ptrace.restype = ctypes.c_long
    numbers, pointers = map(ctypes.c_long, (request, child)), map(ctypes.c_void_p, (address, data))
    return _libc.ptrace(*numbers, *pointers)
