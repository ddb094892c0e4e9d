"""The one exception of the wire."""


class WireError(Exception):
    """Say that a peer broke its protocol.

    ``kind`` is a short stable word for programs, ``message`` a sentence for people. ``body`` holds the body
    bytes of the same read that came before the fault: they were received, so they count.
    """

    def __init__(self, kind: str, message: str, body: bytes = b"") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.body = body
