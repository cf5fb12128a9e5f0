"""The health check of the containers: its exit code is all that Docker sees."""

import socket
import sys
import threading

import pytest

from pillarbox.probe import ask, main


def address(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}/readyz"


def reply(listener: socket.socket, answer: bytes) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.recv(4096)
        connection.sendall(answer)


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", None),
        (b"HTTP/1.1 503 x\r\nContent-Length: 9\r\n\r\nnot ready", "503 not ready"),
        (b"HTTP/1.1 404 x\r\nContent-Length: 0\r\n\r\n", "404 "),
        (b"nothing that is HTTP\r\n\r\n", "BadStatusLine"),
    ],
)
def test_only_200_is_well(answer: bytes, wrong: str | None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        replying = threading.Thread(target=reply, args=(listener, answer))
        replying.start()
        assert ask(address(listener)) == wrong
        replying.join()


def test_a_service_that_hangs_is_not_well() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert ask(address(listener), timeout=0.1) == "TimeoutError"


def test_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = address(listener)
    monkeypatch.setattr(sys, "argv", ["probe", url])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == "ConnectionRefusedError"
