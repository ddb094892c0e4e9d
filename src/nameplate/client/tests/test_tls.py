"""TLS: verified by default, against an authority of one's own, or not at all by an explicit flag."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from nameplate.client.tests.orders import BODY, order_of, plan_of
from nameplate.client.tests.runs import Run, run
from nameplate.client.tests.servers import keep_alive, read_request, serving, whole_answer
from nameplate.contract.errors import ServerError
from nameplate.evidence.records import Kind

pytestmark = pytest.mark.live


@pytest.fixture(autouse=True)
def _quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait less between the attempts before a load gives up a server."""
    monkeypatch.setattr("nameplate.client.loop.REOPEN_EVERY_NS", 10_000_000)


def certificate(directory: Path, name: str) -> Path:
    """Make a self-signed certificate for the loopback; the file holds its key too."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl command to make a certificate with")
    path = directory / f"{name}.pem"
    arguments = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    names = ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    done = subprocess.run(
        [openssl, *arguments, *names, "-keyout", str(path), "-out", f"{path}.crt"],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"openssl made no certificate: {done.stderr.decode()[-200:]}")
    path.write_bytes(path.read_bytes() + Path(f"{path}.crt").read_bytes())
    return path


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the server's certificate."""
    return certificate(tmp_path_factory.mktemp("tls"), "ours")


@pytest.fixture(scope="module")
def context(ours: Path) -> ssl.SSLContext:
    """Make the server's side."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(ours)
    return context


def test_a_custom_authority_is_enough(tmp_path: Path, ours: Path, context: ssl.SSLContext) -> None:
    """Requests go over reused TLS connections; session tickets disturb nobody, and records hold plain bytes."""
    with serving(keep_alive, tls=context) as server:
        runner = Run(order_of(plan_of(3, 18, 1), server.url, tmp_path, body=BODY, ca_file=str(ours)))
        rows = runner.run()
        assert Counter(row.outcome for row in rows) == {"ok": 19} and server.accepted == 3
    reads = [record for record in runner.records() if record.kind == Kind.READ and record.request == 5]
    assert b"".join(record.payload for record in reads) == whole_answer()


def test_the_end_of_a_session_with_the_answer_ends_no_other_request(
    tmp_path: Path, ours: Path, context: ssl.SSLContext
) -> None:
    """A server that ends the TLS session right behind its answer has a new connection opened, and the next request is
    neither lost nor left waiting."""

    def once(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        connection.sendall(whole_answer())
        assert isinstance(connection, ssl.SSLSocket)
        connection.unwrap()

    with serving(once, tls=context) as server:
        rows = run(order_of(plan_of(2, 12), server.url, tmp_path, body=BODY, ca_file=str(ours)))
    assert len(rows) == 12
    for row in rows:
        assert row.outcome == "ok" or (row.outcome == "reset" and "idle" in (row.error or ""))


def test_a_large_body_that_is_refused_early(tmp_path: Path, ours: Path, context: ssl.SSLContext) -> None:
    """An early refusal over TLS, with most of the body unsent, ends the request and not the load."""

    def refuses(connection: socket.socket, _number: int) -> None:
        connection.recv(100)
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}")

    body = b'{"x":"' + b"y" * (8 << 20) + b'"}'
    with serving(refuses, tls=context) as server:
        rows = run(order_of(plan_of(1, 3), server.url, tmp_path, body=body, ca_file=str(ours)))
    assert [(row.outcome, row.http_status) for row in rows] == [("http_error", 413)] * 3


def test_an_unknown_authority_is_refused_clearly(tmp_path: Path, context: ssl.SSLContext) -> None:
    """Without the right authority nothing is sent, and the message says that the certificate is the reason."""
    other = certificate(tmp_path, "other")
    heads: list[bytes] = []

    def noted(connection: socket.socket, _number: int) -> None:
        heads.append(read_request(connection))

    with serving(noted, tls=context) as server:
        for ca_file in (None, str(other)):
            with pytest.raises(ServerError, match="certificate not accepted") as caught:
                Run(order_of(plan_of(1, 1), server.url, tmp_path, body=None if heads or ca_file else BODY,
                             ca_file=ca_file)).run()  # fmt: skip
            assert "--ca" in caught.value.hint
    assert heads == []


def test_insecure_is_a_choice(tmp_path: Path, context: ssl.SSLContext) -> None:
    """With the explicit flag any certificate is taken."""
    with serving(keep_alive, tls=context) as server:
        rows = run(order_of(plan_of(1, 2), server.url, tmp_path, body=BODY, insecure=True))
    assert [row.outcome for row in rows] == ["ok", "ok"]


def test_a_server_that_speaks_no_tls_is_named(tmp_path: Path) -> None:
    """https to a plain server ends in words that say TLS."""

    def plain(connection: socket.socket, _number: int) -> None:
        connection.recv(1)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with serving(plain) as server:
        order = order_of(plan_of(1, 1), server.url.replace("http", "https"), tmp_path, body=BODY)
        with pytest.raises(ServerError, match="TLS"):
            Run(order).run()
