"""So many callers, each with one request in flight and a connection of its own, for so many seconds.

    python -m tests.bench.gateways.load URL MODEL KEY CONCURRENCY SECONDS plain|stream [HEADERS]

HEADERS is a JSON object. Prints one JSON object: answers, failures (with the first one's words), seconds, p50 and p99
of the latencies in milliseconds. What it costs must not weigh on what it measures, so it speaks HTTP/1.1 in the
one form that it needs.
"""

import asyncio
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

END = b"0\r\n\r\n"
LAST_FRAME = b"data: [DONE]"


@dataclass
class Tally:
    """What came of the requests. `latencies` in microseconds, of those that were answered as they should be."""

    latencies: list[float] = field(default_factory=list)
    failures: int = 0
    first_failure: str = ""

    def failed(self, words: bytes | str) -> None:
        """One more that went wrong."""
        self.failures += 1
        self.first_failure = self.first_failure or str(words)[:400]


def request_bytes(url: str, model: str, key: str, streamed: bool, headers: Mapping[str, str]) -> bytes:
    """The request: a short conversation."""
    messages = [
        {"role": "system", "content": "You are a helpful assistant. Answer in plain words."},
        {"role": "user", "content": "Tell me why the sky is blue, in about twenty words, for a child of ten years."},
    ]
    body: dict[str, Any] = {"model": model, "messages": messages, "max_tokens": 64, "temperature": 0.2}
    if streamed:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    data = json.dumps(body, separators=(",", ":")).encode()
    place = urlsplit(url)
    head = (
        f"POST {place.path} HTTP/1.1\r\nHost: {place.netloc}\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
    )
    more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{head}{more}\r\n".encode() + data


async def answer(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """(head, body) of one answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    low = head.lower()
    if b"transfer-encoding: chunked" in low:
        body = await reader.readuntil(END)
        while not body.endswith(b"\r\n" + END) and body != END:
            body += await reader.readuntil(END)
        return head, body
    length = int(low.partition(b"content-length:")[2].partition(b"\r\n")[0])
    return head, await reader.readexactly(length)


async def caller(host: str, port: int, request: bytes, streamed: bool, until: float, tally: Tally) -> None:
    """One caller, until the time is up."""
    wanted = LAST_FRAME if streamed else b'"choices"'
    while time.perf_counter() < until:
        reader, writer = await asyncio.open_connection(host, port, limit=1 << 22)
        try:
            while (begun := time.perf_counter()) < until:
                writer.write(request)
                head, body = await answer(reader)
                if b" 200 " not in head[:20] or wanted not in body:
                    tally.failed(head[:60] + body)
                    continue
                tally.latencies.append((time.perf_counter() - begun) * 1e6)
        except (OSError, EOFError, asyncio.IncompleteReadError) as error:
            tally.failed(repr(error))
        finally:
            writer.close()


def percentile(latencies: list[float], share: float) -> float:
    """In milliseconds; not a number where nothing was answered."""
    ordered = sorted(latencies)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] / 1000 if ordered else float("nan")


async def main(
    url: str, model: str, key: str, concurrency: int, seconds: float, streamed: bool, headers: Mapping[str, str]
) -> dict[str, Any]:
    """Load, and what came of it."""
    place, tally = urlsplit(url), Tally()
    request = request_bytes(url, model, key, streamed, headers)
    begun = time.perf_counter()
    until = begun + seconds
    port = place.port or 80
    host = place.hostname or "127.0.0.1"
    await asyncio.gather(*(caller(host, port, request, streamed, until, tally) for _ in range(concurrency)))
    return {
        "answers": len(tally.latencies),
        "failures": tally.failures,
        "first_failure": tally.first_failure,
        "seconds": time.perf_counter() - begun,
        "p50_ms": percentile(tally.latencies, 0.50),
        "p99_ms": percentile(tally.latencies, 0.99),
    }


if __name__ == "__main__":
    import uvloop

    given = sys.argv[1:]
    more = json.loads(given[6]) if len(given) > 6 else {}
    print(json.dumps(uvloop.run(main(*given[:3], int(given[3]), float(given[4]), given[5] == "stream", more))))
