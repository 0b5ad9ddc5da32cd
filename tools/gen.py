"""Generate the code of the contract: protos/ in, libs/gen out. Offline, from the packages of uv.lock alone.

    python tools/gen.py            write libs/gen
    python tools/gen.py --check    write nothing; exit 1 and name the files if libs/gen is not what protos/ says
    python tools/gen.py --vendor   only lay out the foreign protos that buf needs, in .build/googleapis

The same protos give the same bytes: sources are handed over sorted, the plugins are pinned, nothing tells the time.
"""

import argparse
import contextlib
import importlib.util
import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROTOS = ROOT / "protos"
GEN = ROOT / "libs" / "gen"
VENDORED = ROOT / ".build" / "googleapis"
FOREIGN = ("google/type", "google/rpc")
PACKAGE_DEED = '"""Generated from protos/{path} by `make gen`. Never edited: change the proto."""\n'


def package_root(module: str) -> Path:
    """The folder under which the protos of an installed package lie."""
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"gen: package {module} is not installed; run `make setup`")
    return Path(next(iter(spec.submodule_search_locations)))


def googleapis() -> Path:
    """Include path of google/type and google/rpc."""
    return package_root("google.rpc").parent.parent


def vendor() -> None:
    """Copy the foreign protos for buf, which reads only what lies in a module of buf.yaml."""
    wanted = {
        f"{folder}/{proto.name}": proto.read_bytes()
        for folder in FOREIGN
        for proto in sorted((googleapis() / folder).glob("*.proto"))
    }
    write(VENDORED, wanted)


def sources() -> list[str]:
    """Every proto of the contract, relative to protos/, sorted."""
    return sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))


def compile_into(out: Path, protos: list[str]) -> None:
    """Run protoc with the four generators; protoc's own words go to stderr when it fails."""
    command = [
        *(sys.executable, "-m", "grpc_tools.protoc"),
        *(f"-I{PROTOS}", f"-I{package_root('grpc_tools') / '_proto'}", f"-I{googleapis()}"),
        f"--plugin=protoc-gen-mypy={Path(sys.executable).parent / 'protoc-gen-mypy'}",
        f"--plugin=protoc-gen-mypy_grpc={Path(sys.executable).parent / 'protoc-gen-mypy_grpc'}",
        *(f"--python_out={out}", f"--mypy_out=quiet:{out}"),
        *(f"--grpc_python_out={out}", f"--mypy_grpc_out=quiet:{out}"),
        *protos,
    ]
    if subprocess.run(command, cwd=ROOT).returncode:
        raise SystemExit("gen: protoc refused the protos (see above); libs/gen is unchanged")


def serves(proto: str) -> bool:
    """Whether the file declares a service, and so needs gRPC code."""
    return any(line.startswith("service ") for line in (PROTOS / proto).read_text().splitlines())


def generate() -> dict[str, bytes]:
    """The whole of libs/gen as {relative path: bytes}."""
    protos = sources()
    if not protos:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        compile_into(out, protos)
        for proto in protos:
            if not serves(proto):  # protoc writes an empty _pb2_grpc for every file; an empty module only misleads
                for suffix in ("_pb2_grpc.py", "_pb2_grpc.pyi"):
                    (out / proto.replace(".proto", suffix)).unlink(missing_ok=True)
        tree = {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
    for package in sorted({parent for path in tree for parent in Path(path).parents if parent != Path(".")}):
        tree[f"{package}/__init__.py"] = PACKAGE_DEED.format(path=package).encode()
    tree["pointsman/py.typed"] = b""
    return tree


def present(root: Path) -> dict[str, bytes]:
    """What a folder holds now, without byte-code caches."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def differences(wanted: dict[str, bytes], found: dict[str, bytes]) -> list[str]:
    """The paths that are missing, left over or different."""
    return sorted(path for path in wanted.keys() | found.keys() if wanted.get(path) != found.get(path))


def write(root: Path, wanted: dict[str, bytes]) -> list[str]:
    """Make a folder hold exactly the wanted files; touches only what differs and answers those paths."""
    changed = differences(wanted, present(root))
    for name in changed:
        path = root / name
        if name not in wanted:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.partial")
        partial.write_bytes(wanted[name])
        partial.replace(path)  # a reader sees the old file or the new one, never half of one
    drop_empty_folders(root)
    return changed


def drop_empty_folders(root: Path) -> None:
    """Remove folders that only hold caches: an old package left behind would still import."""
    for folder in sorted((path for path in root.rglob("*") if path.is_dir()), reverse=True):
        if folder.name == "__pycache__":
            if not any(folder.parent.glob("*.py")):
                shutil.rmtree(folder)
        else:
            with contextlib.suppress(OSError):
                folder.rmdir()


def main(argv: list[str]) -> int:
    """Do what the arguments ask; 1 when --check finds a difference."""
    parser = argparse.ArgumentParser(description=io.StringIO(__doc__).readline())
    parser.add_argument("--check", action="store_true", help="only compare")
    parser.add_argument("--vendor", action="store_true", help="only lay out the foreign protos for buf")
    asked = parser.parse_args(argv)
    vendor()
    if asked.vendor:
        return 0
    wanted = generate()
    if asked.check:
        stale = differences(wanted, present(GEN))
        for name in stale:
            print(f"gen: libs/gen/{name} is not what protos/ says; run `make gen`", file=sys.stderr)
        return 1 if stale else 0
    for name in write(GEN, wanted):
        print(f"gen: libs/gen/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
