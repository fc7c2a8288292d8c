"""A filter of system calls, which the kernel enforces on programs in the sandbox.

It allows files, memory, time and the program's own signals. Every other call fails with EPERM: processes and
threads, signals to others, ptrace, sockets, mounts, namespaces, ioctl, io_uring, bpf, keys. libseccomp knows
the numbers of the calls on each architecture. It kills a program that uses the numbers of another
architecture.
"""

import ctypes
import errno
import tempfile
from functools import cache

from encore.errors import UserError

LIBRARY = "libseccomp.so.2"
ALLOW, FAIL = 0x7FFF0000, 0x00050000 | errno.EPERM
EQUAL = 4  # SCMP_CMP_EQ
UNKNOWN = -1  # __NR_SCMP_ERROR; a call that this architecture lacks has another negative number
CALLS = """
    read write readv writev pread64 pwrite64 lseek close open openat creat ftruncate truncate fsync
    stat fstat lstat newfstatat statx access faccessat faccessat2 readlink readlinkat getcwd chdir getdents64
    unlink unlinkat mkdir mkdirat rmdir rename renameat renameat2 dup dup2 dup3 umask
    mmap munmap mremap mprotect madvise brk futex
    rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack exit exit_group restart_syscall
    clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time times getrusage
    poll ppoll select pselect6 sched_yield sched_getaffinity getrandom uname sysinfo
    getpid getppid gettid getuid geteuid getgid getegid getrlimit
"""
# (call, number of an argument, its allowed values): a program may change the flags of descriptors but not who
# gets their signals, and the limits of its own process but not of another process
FIXED = (("fcntl", 1, (0, 1, 2, 3, 1030)), ("prlimit64", 0, (0,)))


class Comparison(ctypes.Structure):
    _fields_ = (  # struct scmp_arg_cmp
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("first", ctypes.c_uint64),
        ("second", ctypes.c_uint64),
    )


@cache
def instructions() -> bytes:
    """Return the filter as classic BPF for this machine. Raises UserError without libseccomp."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        raise UserError(f"sandbox: {LIBRARY} is not installed (Debian: libseccomp2)") from None
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_syscall_resolve_name.restype = ctypes.c_int
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(FAIL)))
    rules: list[tuple[str, Comparison | None]] = [(name, None) for name in CALLS.split()]
    rules += [(name, Comparison(arg, EQUAL, value, 0)) for name, arg, values in FIXED for value in values]
    for name, comparison in rules:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number < 0 and number != UNKNOWN:
            continue  # such as open on arm64, which lacks it
        conditions = (Comparison * 1)(comparison) if comparison else None
        count = 1 if comparison else 0
        if library.seccomp_rule_add_array(context, ctypes.c_uint32(ALLOW), number, count, conditions):
            raise UserError(f"sandbox: {LIBRARY} refuses a rule for {name}; a newer libseccomp is needed")
    with tempfile.TemporaryFile() as file:
        if library.seccomp_export_bpf(context, file.fileno()):
            raise UserError(f"sandbox: {LIBRARY} wrote no filter")
        file.seek(0)
        compiled = file.read()
    library.seccomp_release(context)
    return compiled
