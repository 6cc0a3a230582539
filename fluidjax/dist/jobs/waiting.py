"""Waiting for the other processes of a job to listen: only where there are any, and never for ever."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable

from ...errors import EnforceNotMet
from .process import current_job

TIMEOUT = 60.0  # seconds
LAUNCHED = "FLUIDJAX_HUB"  # set by `python -m fluidjax launch`, which itself sees to it that all are there


def is_separate_job() -> bool:
    """Whether this process was started as one of a Fluid job, and the others have not been met yet (init_from_env)."""
    role = os.environ.get("PADDLE_TRAINING_ROLE") or os.environ.get("TRAINING_ROLE")
    return bool(role) and not os.environ.get(LAUNCHED) and current_job() is None


def wait_for(endpoints: Iterable[str], timeout: float = TIMEOUT) -> None:
    """Return when every endpoint accepts a connection; at once where this process is no part of a separate job.

    Raises EnforceNotMet, naming those that do not answer, after `timeout` seconds.
    """
    if not is_separate_job():
        return
    end = time.monotonic() + timeout
    missing = list(endpoints)
    while missing := [e for e in missing if not _listens(e)]:
        if time.monotonic() >= end:
            raise EnforceNotMet(
                f"nobody listens on {', '.join(missing)} after {timeout:g} s; start all processes of the job, or let "
                "`python -m fluidjax launch` do it"
            )
        time.sleep(min(0.2, max(0.0, end - time.monotonic())))


def _listens(endpoint: str) -> bool:
    host, _, port = endpoint.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=1.0):
            return True
    except OSError:
        return False
