"""Serves a saved model: Open Inference Protocol v2 in JSON over HTTP.

``python -m fluidjax serve FOLDER`` runs :func:`serve`; an ASGI server of your own takes
:class:`Application`. The path of a request: `application` (addresses, limits) -> `protocol` (JSON
to arrays) -> `batching` (requests of one kind together) -> `model` (runs) -> `protocol` again.
"""

from __future__ import annotations

from importlib.util import find_spec

from ..errors import UnsupportedError

if find_spec("uvicorn") is None or find_spec("orjson") is None:
    raise UnsupportedError(
        "serving needs the packages uvicorn and orjson: pip install 'fluidjax[serve]'"
    )

from .application import Application as Application
from .server import is_loopback as is_loopback
from .server import serve as serve
from .settings import Settings as Settings

__all__ = ["Application", "Settings", "is_loopback", "serve"]
