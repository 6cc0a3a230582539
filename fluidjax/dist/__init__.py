"""Programs on many devices and hosts: jobs of several processes, plans, passes that insert communication, jobs in one process."""

from __future__ import annotations

from .jobs.process import Job as Job
from .jobs.process import current_job as current_job
from .jobs.process import init_from_env as init_from_env
from .local.job import LocalJob as LocalJob
from .local.messages import Message as Message
