"""Programs that would do harm, or be paid without solving the task: `f(x)` is x + SECRET.

An attack that works goes on to a right `f`, so that its reward is 1: a reward of 0 says that it failed.
{canary} is a file outside that must stay as it is, {parent} the process of the tests, {home} the home of who
runs them, {port} a port on which they listen. Those of UNENDING stop at a limit.
"""

# ruff: noqa: E501 - a program a line

SECRET = 918_273  # no program of FORGING computes it
RIGHT = f"\ndef f(x): return x + {SECRET}\n"
C = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"

UNENDING = {
    "endless loop": "while True: pass",
    "endless loop in the call": "def f(x):\n while True: pass",
    "sleep": "import time\ntime.sleep(1000)",
    "loop that catches everything": "while True:\n try:\n  while True: pass\n except BaseException: pass",
    "loop that ignores signals": "import signal\nfor s in range(1, 32):\n try: signal.signal(s, signal.SIG_IGN)\n"
    " except (OSError, ValueError): pass\nwhile True: pass",
    "huge power": "x = 9 ** 9 ** 9",
    "catastrophic regular expression": "import re\nre.match('(a+)+$', 'a' * 60 + 'b')",
    "read that never returns": "import os\nr, w = os.dup(0), 0\nimport select\nselect.select([], [], [])",
    "values printed without end": "import os\nwhile True: os.write(3, b'4\\n' * 4096)",
    "loop in a destructor": "class D:\n def __del__(self):\n  while True: pass\nd = D()\ndel d",
    "loop in repr": "class D(int):\n def __repr__(self):\n  while True: pass\nf = lambda x: float(D(x))\n"
    "import json\njson.dumps = lambda v: repr(D(1))",
    "many files": "import os\ni = 0\nwhile True:\n os.close(os.open(str(i), os.O_CREAT)); i += 1",
}

RESOURCES = {
    "fork bomb": "import os\nwhile True: assert os.fork() >= 0" + RIGHT,
    "one fork": "import os\npid = os.fork()\nif pid == 0:\n import time\n time.sleep(100)" + RIGHT,
    "vfork by ctypes": C + "assert libc.vfork() > 0" + RIGHT,
    "clone3 by ctypes": C + "assert libc.syscall(435, ctypes.create_string_buffer(88), 88) >= 0" + RIGHT,
    "thread bomb": "import _thread, time\nfor _ in range(10000): _thread.start_new_thread(time.sleep, (9,))"
    + RIGHT,
    "subprocess": "import subprocess\nsubprocess.run(['/usr/bin/env'], check=True)" + RIGHT,
    "os.system": "import os\nassert os.system('true') == 0" + RIGHT,
    "execve": "import os\nos.execv('/usr/bin/true', ['true'])" + RIGHT,
    "multiprocessing": "import multiprocessing as m\np = m.Process(target=print)\np.start()\np.join()"
    + RIGHT,
    "daemon": "import os\nos.setsid()\nif os.fork(): pass\nelse:\n while True: pass" + RIGHT,
    "10 GB": "x = bytearray(10 << 30)" + RIGHT,
    "10 GB by and by": "x = []\nwhile len(x) < 1000: x.append(bytearray(10 << 20))" + RIGHT,
    "10 GB mapped": "import mmap\nm = mmap.mmap(-1, 10 << 30)" + RIGHT,
    "long list": "x = [0] * (1 << 31)" + RIGHT,
    "long string": "x = 'a' * (1 << 33)" + RIGHT,
    "zip bomb": "import zlib\nx = zlib.compress(bytes(1 << 28))\ny = [zlib.decompress(x) for _ in range(9)]"
    + RIGHT,
    "10 GB file": "with open('a', 'wb') as a:\n for _ in range(10 << 10): a.write(bytes(1 << 20))" + RIGHT,
    "sparse file": "import os\nos.truncate(os.open('a', os.O_CREAT | os.O_RDWR), 1 << 40)" + RIGHT,
    "tmpfs filled by many": "for i in range(100):\n with open(str(i), 'wb') as a: a.write(bytes(1 << 20))"
    + RIGHT,
    "descriptors left open": "import os\nx = [os.dup(0) for _ in range(10000)]" + RIGHT,
    "limits raised": "import resource as r\nr.setrlimit(r.RLIMIT_CPU, (r.RLIM_INFINITY, r.RLIM_INFINITY))"
    + RIGHT,
    "limits of others": C
    + "assert libc.prlimit(os.getppid(), 0, ctypes.create_string_buffer(16), None) == 0"
    + RIGHT,
    "deep recursion": "import sys\nsys.setrecursionlimit(1 << 30)\ndef g(n): return g(n + 1)\ng(0)" + RIGHT,
    "deep value": "def f(x):\n v = []\n for _ in range(1 << 20): v = [v]\n return v",
    "deep source": "x = " + "(" * 100_000 + ")" * 100_000 + RIGHT,
    "huge source": "x = '" + "a" * (1 << 20) + "'" + RIGHT,
    "huge output": "def f(x): return 'a' * (1 << 26)",
    "huge output to stdout": "print('a' * (1 << 27))\nraise SystemExit",
    "huge integer": "def f(x): return 10 ** 100_000",
    "segmentation fault": "import ctypes\nctypes.string_at(0)" + RIGHT,
    "null bytes": "x = '\0'" + RIGHT,
    "lone surrogate": "x = '\ud800'" + RIGHT,
}

REACHING_OUT = {
    "write outside": "open('{canary}', 'w').write('owned')" + RIGHT,
    "write to the root": "open('/owned', 'w').write('')" + RIGHT,
    "write to the libraries": "import os\nopen(os.__file__, 'a').write('')" + RIGHT,
    "remove the libraries": "import os\nos.remove(os.__file__)" + RIGHT,
    "write to /etc": "open('/etc/owned', 'w').write('')" + RIGHT,
    "read a file outside": "open('{canary}').read()" + RIGHT,
    "read passwords": "open('/etc/passwd').read()" + RIGHT,
    "symlink": "import os\nos.symlink('{canary}', 'link')\nopen('link', 'w').write('owned')" + RIGHT,
    "hard link": "import os\nos.link('/etc/ld.so.cache', 'link')" + RIGHT,
    "dots": "open('../' * 40 + '{canary}'[1:], 'w').write('owned')" + RIGHT,
    "home": "import os, sys\nassert set(os.listdir('{home}')) - set(sys.base_prefix.split('/'))" + RIGHT,
    "the repository": "import encore.sandbox.pool" + RIGHT,
    "site-packages": "import torch" + RIGHT,
    "device": "open('/dev/sda', 'rb').read(1)" + RIGHT,
    "make a device": "import os, stat\nos.mknod('d', stat.S_IFBLK | 0o666, os.makedev(8, 0))" + RIGHT,
    "TCP": "import socket\nsocket.create_connection(('127.0.0.1', {port}), 1)" + RIGHT,
    "UDP": "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port}))"
    + RIGHT,
    "name look-up": "import socket\nsocket.getaddrinfo('example.com', 80)" + RIGHT,
    "unix socket": "import socket\nsocket.socketpair()" + RIGHT,
    "raw socket by ctypes": C + "assert libc.socket(16, 3, 0) >= 0" + RIGHT,
    "the environment": "import os\nos.environ['ENCORE_CANARY']" + RIGHT,
    "the environment in /proc": "open('/proc/self/environ').read()" + RIGHT,
    "memory of the parent": "import os\nopen('/proc/%d/mem' % os.getppid(), 'rb')" + RIGHT,
    "/proc": "import os\nassert os.listdir('/proc')" + RIGHT,
    "mount /proc": C + "assert libc.mount(b'proc', b'/tmp', b'proc', 0, None) == 0" + RIGHT,
    "remount": C + "assert libc.mount(None, b'/', None, 32, None) == 0" + RIGHT,
    "new user namespace": C + "assert libc.unshare(0x10000000) == 0" + RIGHT,
    "chroot": "import os\nos.chroot('/tmp')" + RIGHT,
    "kill the parent": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)" + RIGHT,
    "kill the tests": "import os, signal\nos.kill({parent}, signal.SIGKILL)" + RIGHT,
    "kill everything": "import os, signal\nos.kill(-1, signal.SIGKILL)" + RIGHT,
    "signal by a descriptor's owner": "import fcntl, os\nfcntl.fcntl(3, fcntl.F_SETOWN, os.getppid())"
    + RIGHT,
    "ptrace": C + "assert libc.ptrace(16, os.getppid(), 0, 0) == 0" + RIGHT,
    "write into the parent": C
    + "assert libc.process_vm_writev(os.getppid(), None, 0, None, 0, 0) >= 0"
    + RIGHT,
    "pidfd": "import os\nos.pidfd_open(os.getppid())" + RIGHT,
    "shared memory": C + "assert libc.shmget(7, 4096, 0o1666) >= 0" + RIGHT,
    "io_uring": C + "assert libc.syscall(425, 8, ctypes.create_string_buffer(120)) >= 0" + RIGHT,
    "bpf": C + "assert libc.syscall(321, 5, ctypes.create_string_buffer(120), 120) >= 0" + RIGHT,
    "keys": C + "assert libc.syscall(250, 0, -3, 0) >= 0" + RIGHT,
    "root": "import os\nos.setuid(0)" + RIGHT,
    "terminal": "import fcntl, termios\nfcntl.ioctl(0, termios.TIOCSTI, b'x')" + RIGHT,
    "the clock": "import time\ntime.clock_settime(time.CLOCK_REALTIME, 0)" + RIGHT,
}

FORGING = {
    "closed pipe and a loop": "import os\nos.close(3)\nwhile True: pass",
    "exit 0": "import os\nos._exit(0)",
    "exit 0 in the call": "def f(x):\n import os\n os._exit(0)",
    "SystemExit": "raise SystemExit(0)",
    "KeyboardInterrupt": "raise KeyboardInterrupt",
    "a pass printed": "print('PASSED')\nprint('4')\nprint('OK', flush=True)",
    "a pass on every descriptor": "import os\nfor fd in range(64):\n try: os.write(fd, b'{\"passed\": true}\\n' * 9)\n"
    " except OSError: pass\nos._exit(0)",
    "frames of the answer": "import os, struct\nos.write(3, struct.pack('<I', 2) + b'{}')\nos._exit(0)",
    "equal to everything": "class E(int):\n def __eq__(self, other): return True\n __hash__ = int.__hash__\n"
    "def f(x): return E(0)",
    "json patched": "import json\njson.dumps = lambda value: '{\"passed\": true}'\ndef f(x): return 0",
    "builtins patched": "import builtins\nbuiltins.eval = lambda *a: True\nbuiltins.compile = lambda *a: True\n"
    "def f(x): return 0",
    "checker patched": "import sys\nmain = sys.modules['__main__']\nmain._encoded = main._attempt = lambda *a: 'true'\n"
    "def f(x): return 0",
    "expected value in the frames": "import sys\ndef f(x):\n frame = sys._getframe()\n while frame:\n"
    "  for held in frame.f_locals.values():\n   if held in (918276, [918276]): return held\n  frame = frame.f_back",
    "expected value in the heap": "import gc\ndef f(x):\n for held in gc.get_objects():\n"
    "  if isinstance(held, dict) and 'expected' in held: return held['expected']",
    "trace function": "import sys\nsys.settrace(lambda frame, event, arg: frame.f_locals.update(value=True))\n"
    "def f(x): return 0",
    "an error inside a value": "import os\nos.write(3, b'[{\"error\": 4}]\\n')\nos._exit(0)",
    "no such kind of value": 'import os\nos.write(3, b\'{"exec": "4"}\\n{}\\n{"float": []}\\n\')\nos._exit(0)',
    "brackets": "import os\nos.write(3, b'[' * 60000 + b'\\n')\nos._exit(0)",
    "not a number": "def f(x): return float('nan')",
    "nothing": "",
    "no function": "x = 1",
    "not Python": "def f(x return x + 1",
}

PROGRAMS = {**UNENDING, **RESOURCES, **REACHING_OUT, **FORGING}
