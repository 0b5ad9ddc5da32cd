"""The generated code of hop_echo.proto, made on first import into a folder that goes with the process."""

import importlib
import sys
import tempfile
from pathlib import Path
from typing import Any

from grpc_tools import protoc

_HERE = Path(__file__).parent
_folder = tempfile.TemporaryDirectory(prefix="pointsman-echo-")


def _generate() -> tuple[Any, Any]:
    out = _folder.name
    status = protoc.main(
        ["protoc", f"-I{_HERE}", f"--python_out={out}", f"--grpc_python_out={out}", str(_HERE / "hop_echo.proto")]
    )
    assert status == 0, "protoc failed"
    sys.path.insert(0, out)
    try:
        return importlib.import_module("hop_echo_pb2"), importlib.import_module("hop_echo_pb2_grpc")
    finally:
        sys.path.remove(out)


pb2, pb2_grpc = _generate()
SERVICE = "pointsman.testing.v1.EchoService"
