"""What can stand between a caller and the provider, each started as a child process with all that it needs.

`floor` is the pass-through, `ours` the product as `pointsman up` starts it (embedded database, fsync on), with two
channels and three supplies, all of them the one provider, every gate set and a key of a tenant with quotas. Peers are
installed into `.build/peers` when they are asked for: LiteLLM's proxy by `uv`, Portkey's gateway by `npm`.
"""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep

import yaml

from cli.demo.stage import free_ports
from tests.support import processes

LITELLM, PORTKEY = "litellm[proxy]==1.108.7", "@portkey-ai/gateway@1.15.2"
PEERS = processes.ROOT / ".build" / "peers"
START_S = 90.0
ADMIN_KEY = "pm_bench_admin"
PROVIDER_KEY = "provider-key"
ROUTE = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Door:
    """Where requests go, and the process whose tree they cost. `headers` are for the load."""

    url: str
    model: str
    key: str
    pid: int
    headers: Mapping[str, str] = field(default_factory=dict)

    def cpu_seconds(self) -> float:
        """Processor time of the whole tree so far; 0 where there is none of ours."""
        return processes.cpu_seconds(processes.tree(self.pid)) if self.pid else 0.0


@contextmanager
def child(arguments: list[str], log: Path, env: Mapping[str, str], ready: Callable[[], bool]) -> Iterator[int]:
    """The pid of a started program, once it answers; it is ended with everything below it."""
    process = processes.spawn(arguments, processes.environment("bench", env), log)
    try:
        deadline = monotonic() + START_S
        while not ready():
            if process.poll() is not None or monotonic() > deadline:
                raise RuntimeError(f"{arguments[:4]} did not start: {log.read_text(errors='replace')[-2000:]}")
            sleep(0.05)
        yield process.pid
    finally:
        tree = processes.tree(process.pid)
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(30)
        processes.send(processes.alive(tree), 9)  # type: ignore[arg-type]  # a number is a signal


def answers(port: int, path: str = "/") -> Callable[[], bool]:
    """Whether anything answers there; an HTTP error is an answer."""

    def asked() -> bool:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=2).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    return asked


@contextmanager
def provider(folder: Path) -> Iterator[str]:
    """Its base URL, with the version prefix."""
    (port,) = free_ports(1)
    arguments = [sys.executable, "-m", "tests.bench.gateways.upstream", str(port)]
    with child(arguments, folder / "provider.log", {}, answers(port)):
        yield f"http://127.0.0.1:{port}/v1"


@contextmanager
def direct(folder: Path, upstream: str) -> Iterator[Door]:
    """Nothing in between."""
    yield Door(f"{upstream}/chat/completions", "mock-chat", PROVIDER_KEY, 0)


@contextmanager
def floor(folder: Path, upstream: str) -> Iterator[Door]:
    """The pass-through."""
    (port,) = free_ports(1)
    arguments = [sys.executable, "-m", "tests.bench.gateways.pass_through", str(port), f"{upstream}/chat/completions"]
    with child(arguments, folder / "floor.log", {}, answers(port)) as pid:
        yield Door(f"http://127.0.0.1:{port}{ROUTE}", "mock-chat", PROVIDER_KEY, pid)


@contextmanager
def ours(folder: Path, upstream: str) -> Iterator[Door]:
    """The product with every check on."""
    http, grpc = free_ports(2)
    catalog, ready = folder / "catalog.yaml", folder / "ready"
    catalog.write_text(yaml.safe_dump(_catalog(upstream)), encoding="utf-8")
    options = ["--http", f"127.0.0.1:{http}", "--grpc", f"127.0.0.1:{grpc}", "--data", str(folder / "data")]
    options += ["--catalog", str(catalog), "--ready-file", str(ready), "--no-providers"]
    env = {
        "POINTSMAN_ADMIN_KEY": ADMIN_KEY,
        "POINTSMAN_ALLOW_PRIVATE_URLS": "1",
        "POINTSMAN_LOG_LEVEL": "warning",
        "BENCH_PROVIDER_KEY": PROVIDER_KEY,
    }
    arguments = [sys.executable, "-m", "cli", "up", *options]
    with child(arguments, folder / "ours.log", env, ready.exists) as pid:
        url = f"http://127.0.0.1:{http}"
        yield Door(f"{url}{ROUTE}", "bench-chat", _key(url), pid)


def _key(url: str) -> str:
    body = json.dumps({"tenant": "bench", "scopes": ["invoke"]}).encode()
    headers = {"Authorization": f"Bearer {ADMIN_KEY}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/operator/keys", body, headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return str(json.load(answer)["key"])


def _catalog(upstream: str) -> dict[str, object]:
    gates = {"concurrency": 500, "rpm": 10_000_000, "tpm": 1_000_000_000}
    channels = [
        {"id": name, "adapter": "openai", "base_url": upstream, "secret": "env:BENCH_PROVIDER_KEY", "limits": gates}
        for name in ("first", "second")
    ]
    supplies = [
        {
            "id": f"{channel}/{model}",
            "channel": channel,
            "upstream_model": "mock-chat",
            "kind": "chat",
            "capability_version": 1,
            "capabilities": {"context_tokens": 128_000, "max_output_tokens": 16_384},
            "limits": gates,
            "evidence": "waived",
            "evidence_reason": "a benchmark",
            "prices": [f"price-{model}"],
        }
        for channel, model in (("first", "fine"), ("first", "plain"), ("second", "plain"))
    ]
    bindings = [{"supply": supply["id"], "tier": "exact"} for supply in supplies]
    model = {"id": "bench-chat", "kind": "chat", "policy": "usual", "enabled": True, "published": True}
    return {
        "version": 1,
        "currency": "CNY",
        "fx": {"USD": "7.00"},
        "channels": channels,
        "supplies": supplies,
        "prices": [_price("fine", "0.15"), _price("plain", "0.16")],
        "policies": [{"id": "usual", "order": "stable_first"}],
        "models": [model | {"bindings": bindings}],
        "tenants": [{"id": "bench", "models": ["*"], "quotas": {"rpm": 10_000_000}}],
    }


def _price(name: str, given: str) -> dict[str, object]:
    usual = {"version": 1, "currency": "USD", "billing_mode": "per_token", "output_per_million": "0.60"}
    return usual | {"id": f"price-{name}", "input_per_million": given, "cached_input_per_million": "0.075"}


@contextmanager
def litellm(folder: Path, upstream: str) -> Iterator[Door]:
    """LiteLLM's proxy, one worker, without a database."""
    home = PEERS / "litellm"
    program = home / "bin" / "litellm"
    if not program.exists():
        uv = processes.ROOT / ".uv" / "bin" / "uv"
        subprocess.run([str(uv), "venv", "-q", "--python", sys.executable, str(home)], check=True)
        subprocess.run([str(uv), "pip", "install", "-q", "--python", str(home / "bin/python"), LITELLM], check=True)
    (port,) = free_ports(1)
    config = folder / "litellm.yaml"
    parameters = {"model": "openai/mock-chat", "api_base": upstream, "api_key": PROVIDER_KEY}
    models = [{"model_name": "bench-chat", "litellm_params": parameters}]
    config.write_text(yaml.safe_dump({"model_list": models, "general_settings": {"master_key": "sk-bench"}}))
    env = {"LITELLM_LOG": "ERROR", "LITELLM_MODE": "PRODUCTION", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    arguments = [str(program), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    with child(arguments, folder / "litellm.log", env, answers(port, "/health/liveliness")) as pid:
        yield Door(f"http://127.0.0.1:{port}{ROUTE}", "bench-chat", "sk-bench", pid)


@contextmanager
def portkey(folder: Path, upstream: str) -> Iterator[Door]:
    """Portkey's gateway in Node; it is told the provider by headers."""
    home = PEERS / "portkey"
    if not (home / "node_modules").exists():
        home.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--silent", "--prefix", str(home), PORTKEY], check=True)
    (port,) = free_ports(1)
    program = home / "node_modules" / "@portkey-ai" / "gateway" / "build" / "start-server.js"
    arguments = ["node", str(program), f"--port={port}", "--headless"]
    headers = {"x-portkey-provider": "openai", "x-portkey-custom-host": upstream}
    with child(arguments, folder / "portkey.log", {"PATH": os.environ["PATH"]}, answers(port)) as pid:
        yield Door(f"http://127.0.0.1:{port}{ROUTE}", "mock-chat", PROVIDER_KEY, pid, headers)


PLACES = {"direct": direct, "pass-through": floor, "pointsman": ours, "litellm": litellm, "portkey": portkey}
"""By name; those after `pointsman` are peers."""
