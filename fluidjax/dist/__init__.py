"""Programs on many devices and hosts: plans, and passes that insert communication; and whole jobs in one process."""

from __future__ import annotations

from .local_job import LocalJob as LocalJob
from .local_messages import Message as Message
