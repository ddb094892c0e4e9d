"""Turn bytes of an HTTP response into meaning, without any I/O.

One response passes through four layers, each a class with ``feed``:
``http.ResponseReader`` (framing), ``body.BodyDecoder`` (what kind of body it is; it owns
``compression`` and ``sse``), ``chunk.ChunkReader`` (chat / completions JSON) and ``tally.Tally``
(what one request's row needs). The same bytes give the same result however they were split into reads.
"""
