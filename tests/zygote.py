"""A process that has imported JAX and the package and does nothing but fork: ``python -m
tests.zygote SOCKET_FD``.

Each message over the socket is a command to run as Python would, in a fork of this process, with
the file descriptors for its stdout, its stderr and the word how it ended. A fork costs nothing
where a new process needs most of a second for its imports. This process starts no thread and no JAX
backend, so a fork is what a new process is after its imports.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import os
import pkgutil
import random
import runpy
import select
import signal
import socket
import sys
from typing import Any

import jax
import numpy as np
import orbax.checkpoint  # noqa: F401

import fluidjax.executor
from fluidjax.errors import UnsupportedError

# one runs what is asked for; the other needs what few tests do
UNASKED = ("fluidjax.__main__", "fluidjax.demo")


def _absent(name: str) -> None:
    """Pass over a part of the package that needs another one, which is not installed."""
    error = sys.exc_info()[1]
    if not isinstance(error, UnsupportedError):
        raise error or ImportError(name)


def load_all() -> None:
    """Import every module of the package: by itself it imports most of them, and the ops, where
    they are first used.
    """
    for module in pkgutil.walk_packages(fluidjax.__path__, "fluidjax.", _absent):
        if not module.name.startswith(UNASKED):
            with contextlib.suppress(UnsupportedError):  # of a package that is not installed
                importlib.import_module(module.name)
            assert len(os.listdir("/proc/self/task")) == 1, (
                f"importing {module.name} starts a thread, or uses a device"
            )


def serve(channel: socket.socket) -> dict[str, Any]:
    """Fork for every message until the channel is closed. Returns in the forks alone: what to run."""
    ended: dict[int, int] = {}  # process -> where to say how it ended
    woken, wake = os.pipe2(os.O_NONBLOCK)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([channel, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _reap(ended)
        if channel not in ready:
            continue
        message, (out, err, end), *_ = socket.recv_fds(channel, 1 << 20, 3)
        if not message:
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for fd in (woken, wake, end, *ended.values()):
                os.close(fd)
            channel.close()
            _take_over(out, err)
            found: dict[str, Any] = json.loads(message)
            return found
        os.close(out)
        os.close(err)
        ended[pid] = end
        channel.send(str(pid).encode())


def _reap(ended: dict[int, int]) -> None:
    for pid, end in list(ended.items()):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            os.write(end, str(os.waitstatus_to_exitcode(status)).encode())
            os.close(ended.pop(pid))


def _take_over(out: int, err: int) -> None:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for mine, standard in ((nothing, 0), (out, 1), (err, 2)):
        os.dup2(mine, standard)
        os.close(mine)


def become(asked: dict[str, Any]) -> None:
    """Be as if this process had been started so: its folder, environment, output, random numbers
    and JAX settings.
    """
    before = dict(os.environ)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    if os.environ.get("PYTHONUNBUFFERED"):
        sys.stdout = io.TextIOWrapper(
            os.fdopen(1, "wb", 0, closefd=False), encoding="utf-8", write_through=True
        )
    random.seed()
    np.random.seed()
    # drawn when the module is imported
    vars(fluidjax.executor)["_PROCESS_SEED"] = int.from_bytes(os.urandom(4), "little")
    for name, text in os.environ.items():
        setting = name.lower()
        if name.startswith("JAX_") and text != before.get(name) and hasattr(jax.config, setting):
            jax.config.update(setting, int(text) if text.isdigit() else text)


def run(words: list[str]) -> None:
    """``-m MODULE ...``, ``-c CODE ...`` or ``SCRIPT ...``."""
    if words[0] == "-c":
        sys.argv, sys.path[0] = ["-c", *words[2:]], ""
        exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})
    elif words[0] == "-m":
        sys.argv, sys.path[0] = [words[1], *words[2:]], os.getcwd()
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = words, os.path.dirname(words[0])
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    load_all()
    gc.freeze()
    request = serve(socket.socket(fileno=int(sys.argv[1])))
    become(request)
    run(request["words"])
