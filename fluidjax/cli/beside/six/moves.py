"""Modules and functions that Python 3 renamed, under six's names."""

from __future__ import annotations

import builtins as builtins
import configparser as configparser
import copyreg as copyreg
import http.client as http_client
import pickle as cPickle
import queue as queue
import socketserver as socketserver
import urllib.error as _error
import urllib.parse as _parse
import urllib.request as _request
from collections import UserDict as UserDict
from collections import UserList as UserList
from functools import reduce as reduce
from importlib import reload as reload_module
from io import StringIO as StringIO
from itertools import filterfalse as filterfalse
from itertools import zip_longest as zip_longest
from os import getcwd as getcwd
from shlex import quote as shlex_quote
from sys import intern as intern
from types import SimpleNamespace

filter, input, map, range, zip = filter, input, map, range, zip
xrange = range
cStringIO = StringIO
urllib = SimpleNamespace(error=_error, parse=_parse, request=_request)

__all__ = [
    "StringIO", "UserDict", "UserList", "builtins", "cPickle", "cStringIO", "configparser", "copyreg", "filter", "filterfalse", "getcwd",
    "http_client", "input", "intern", "map", "queue", "range", "reduce", "reload_module", "shlex_quote", "socketserver", "urllib",
    "xrange", "zip", "zip_longest",
]  # fmt: skip
