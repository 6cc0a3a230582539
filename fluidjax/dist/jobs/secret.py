"""The secret of a job: a text that its processes share, and how two of them prove to each other
that they know it.

Every job has one. The launcher makes it and passes it to the processes that it starts in
``FLUIDJAX_JOB_SECRET``. If you start processes on several machines yourself, set that variable. If
it is not set, the hub makes a secret and writes it to a file that only this user can read, named by
the hub's address. Processes of one user on one machine thus need no setting.

The secret itself is never sent. Each side makes a random nonce, and sends the HMAC of both nonces
under the secret.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import stat
from pathlib import Path

from .env import Endpoint


def new_secret() -> str:
    """A new random secret."""
    return secrets.token_hex(32)


def nonce() -> str:
    """A word unique to a connection."""
    return secrets.token_hex(16)


def proof(secret: str, side: str, mine: str, theirs: str) -> str:
    """The proof that `side` ("hub" or "process") knows the secret, from its own nonce and the other
    side's.
    """
    return hmac.new(secret.encode(), f"{side}:{mine}:{theirs}".encode(), "sha256").hexdigest()


def proves(shown: object, secret: str, side: str, nonce: str, other: str) -> bool:
    """Whether the given proof is that of `side`, compared in constant time."""
    return isinstance(shown, str) and hmac.compare_digest(
        shown.encode(), proof(secret, side, nonce, other).encode()
    )


# -- one user on one machine -----------------------------------------------------------------------


def leave(address: Endpoint, secret: str) -> Path:
    """Write the secret of the hub at this address for this user's other processes. Raises OSError.

    Call this only while listening there, because it replaces an older job's secret.
    """
    path = path_of(address)
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(secret)
    return path


def take_away(address: Endpoint, secret: str) -> None:
    """Remove the file from `leave`, unless another hub has replaced it."""
    with contextlib.suppress(OSError):
        if found(address) == secret:
            path_of(address).unlink()


def found(address: Endpoint) -> str:
    """The secret of the hub at this address, "" if this user has no such file on this machine."""
    try:
        handle = os.open(path_of(address), os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(handle) as file:
            known = os.fstat(handle)
            return (
                file.read(1000) if known.st_uid == os.getuid() and not known.st_mode & 0o077 else ""
            )
    except OSError:
        return ""


def path_of(address: Endpoint) -> Path:
    """The file for the secret of the hub at this address. Raises OSError."""
    return _folder() / f"{address.host.replace(':', '-')}-{address.port}"


def _folder() -> Path:
    """A private folder of this user. It does not depend on environment variables, which may differ
    between the processes of a job.
    """
    if not hasattr(os, "getuid"):
        raise PermissionError("this system has no users of the kind that files are kept from")
    mine = os.getuid()
    for parent, name in (
        (Path(f"/run/user/{mine}"), "fluidjax"),
        (Path("/tmp"), f"fluidjax-{mine}"),
    ):
        folder = parent / name
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            kept = folder.lstat()
        except OSError:
            continue
        if stat.S_ISDIR(kept.st_mode) and kept.st_uid == mine and not kept.st_mode & 0o077:
            return folder
    raise PermissionError("there is no folder that only this user can read under /run/user or /tmp")


__all__ = ["found", "leave", "new_secret", "nonce", "path_of", "proof", "proves", "take_away"]
