"""Untrusted programs run where they can do no harm, and judged by the values they compute.

    results = run([Job("def f(x): return x + 1", ("f(1)", "f(2)"))])  # [Result((2, 3), "done")]

Bubblewrap gives a root of the system's libraries alone, read-only, a tmpfs, no network and namespaces of its
own; each program is a process of its own in it, under seccomp and resource limits (inside.py). The expected
values never enter the sandbox: a program can only send values, and they are compared out here. So nothing it
prints, exits with or patches makes a wrong value right.
"""
