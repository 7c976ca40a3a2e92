"""Runs the calls of an executor one after the other in one job: an interpreter that has imported what they need.

It listens on the loopback address of its node, where the driver reaches it over the link of the cluster. Both show that
they know the key of their batch before anything is unpickled: other users of the node can connect as well.
"""

from __future__ import annotations

import os
import pickle
import socket
import struct
import sys
import time
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import Any, Optional

from .envelope import KEY, RESULTS, SENT, header_problem, port_file, write_durably
from .run_call import become_like, home_of, pickled, run
from .several import OwnCheckpoints

PROGRAM = "import sys; from cohabit._executor.serve_calls import main; sys.exit(main(*sys.argv[1:]))"
"""Runs calls. Arguments: the folder of the interpreters, the nonce in it, and the seconds without a call after which an
interpreter ends.
"""

ABSENCE_SECONDS = 60.0
"""So long a driver may take to connect, and to come back for an answer that it has not got: it may wait for the head."""
HANDSHAKE_SECONDS = 10


def main(folder: str, nonce: str, idle_seconds: str) -> int:
    home = home_of(folder, nonce)
    with open(os.path.join(home, KEY), "rb") as file:
        key = file.read()
    name = port_file(int(os.environ.get("COHABIT_ATTEMPT", "1")))
    index = os.environ.get("COHABIT_ARRAY_INDEX", "0")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1]).encode("ascii")
        said_in = name if folder == SENT else os.path.join(RESULTS, f"{index}-{name}")
        write_durably(os.path.join(home, said_in), port)
        server = Server()
        patience = ABSENCE_SECONDS
        while True:
            connection = _accept(listener, key, patience)
            if connection is None:
                print("the driver did not come back", file=sys.stderr)
                return 0
            with connection:
                if server.serve(connection):
                    return 0
            # A driver that has died does not keep the place of its interpreters for longer than one that waits.
            patience = max(float(idle_seconds), ABSENCE_SECONDS if server.has_unsent_answer else 0)


class Server:
    """Runs calls, whose answers it keeps until the next one comes: the connection to the driver may break."""

    def __init__(self) -> None:
        self._last: Optional[tuple[int, bytes]] = None
        self.has_unsent_answer = False

    def serve(self, connection: Connection) -> bool:
        """Runs the calls that come; false if the connection was lost."""
        try:
            header = pickle.loads(connection.recv_bytes())
            problem = header_problem(header)
            connection.send_bytes(pickle.dumps(problem))
            if problem is not None:
                return True
            become_like(header)
            while True:
                call = pickle.loads(connection.recv_bytes())
                if call is None:
                    return True
                self.has_unsent_answer = True
                connection.send_bytes(self._answer(call, header))
                self.has_unsent_answer = False
        except (OSError, EOFError):
            return False

    def _answer(self, call: tuple[int, bytes, bytes], header: dict[str, Any]) -> bytes:
        number, function, arguments = call
        if self._last is None or self._last[0] != number:
            self._last = None
            with OwnCheckpoints(f"call-{number}"):
                outcome = run(function, arguments, header)
            sys.stdout.flush()
            self._last = number, pickled(outcome)
        return self._last[1]


def _accept(listener: socket.socket, key: bytes, patience: float) -> Optional[Connection]:
    """The driver's next connection; none if it does not come within so many seconds."""
    deadline = time.monotonic() + patience
    while True:
        listener.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            accepted, _ = listener.accept()
        except socket.timeout:
            return None
        accepted.settimeout(None)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _set_timeout(accepted, HANDSHAKE_SECONDS)
        connection = Connection(os.dup(accepted.fileno()))
        try:
            deliver_challenge(connection, key)
            answer_challenge(connection, key)
        except Exception:
            connection.close()  # It was not the driver.
        else:
            _set_timeout(accepted, 0)
            return connection
        finally:
            accepted.close()


def _set_timeout(connected: socket.socket, seconds: int) -> None:
    """Limits each read and write, also of duplicates; 0 is no limit."""
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        connected.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", seconds, 0))
