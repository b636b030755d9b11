"""A port to listen at, or in one line why not."""

from __future__ import annotations

import errno
import os
import socket

from .errors import HeadraceError


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to a host and a port; 0 is any free one.

    Raises HeadraceError: for a port that is in use, which names another, and for whatever else
    the system refuses.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family)
    try:
        if os.name == "posix":  # elsewhere it would take a port from whoever listens there
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen()
    except (OSError, UnicodeError) as error:
        sock.close()
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        number = getattr(error, "errno", None)
        if number == errno.EADDRINUSE:
            said = f"port {port} is in use; stop what listens at {where}, or choose another"
            raise HeadraceError(f"{said}: --port {_free(family, host)}") from None
        if number == errno.EACCES:
            said = "it takes rights that this user has not; choose a --port from 1024 on"
            raise HeadraceError(f"cannot listen at {where}: {said}") from None
        reason = getattr(error, "strerror", None) or str(error)
        raise HeadraceError(f"cannot listen at {where}: {reason}; check --host") from None
    return sock


def _free(family: int, host: str) -> int:
    with socket.socket(family) as sock:
        sock.bind((host, 0))
        return int(sock.getsockname()[1])
