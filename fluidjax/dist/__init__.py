"""Programs on many devices and hosts: jobs of several processes, plans, passes that insert
communication, jobs in one process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..base.lazy import on_demand as _on_demand
from .jobs.process import Job as Job
from .jobs.process import current_job as current_job
from .jobs.process import init_from_env as init_from_env

if _TYPE_CHECKING:  # otherwise imported at first use
    from .holders import who_holds as who_holds
    from .local.job import LocalJob as LocalJob
    from .local.messages import Message as Message

if not _TYPE_CHECKING:
    __getattr__, __dir__ = _on_demand(
        __name__, {"holders": "who_holds", "local.job": "LocalJob", "local.messages": "Message"}
    )
