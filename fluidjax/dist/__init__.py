"""Programs on many devices and hosts: jobs of several processes, plans, passes that insert communication, jobs in one process."""

from __future__ import annotations

from .local_job import LocalJob as LocalJob
from .local_messages import Message as Message
from .runtime import Job as Job
from .runtime import current_job as current_job
from .runtime import init_from_env as init_from_env
