"""A sandbox, in which untrusted programs can do no harm; they are judged by the values that they compute.

    results = run([Job("def f(x): return x + 1", ("f(1)", "f(2)"))])  # [Result((2, 3), "done")]

Bubblewrap gives the program a read-only root with the system's libraries alone, a tmpfs, no network and new
namespaces. Each program is a separate process inside, under seccomp and resource limits (inside.py). The
expected values never enter the sandbox: a program can only send values, which are compared outside. So
nothing that it prints, exits with or patches makes a wrong value right.
"""
