"""Server reflection, v1 and v1alpha: lets buf curl and grpcurl list and call what a port serves.

The Python package ships v1alpha alone. v1 is the same protocol, message for message and number for number, under
another package name; so the v1 service answers with the v1alpha code, and its descriptor is made from v1alpha's.
"""

from collections.abc import Iterable
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.reflection import aio as reflection_aio

V1ALPHA = "grpc.reflection.v1alpha.ServerReflection"
V1 = "grpc.reflection.v1.ServerReflection"
_V1_FILE = "grpc/reflection/v1/reflection.proto"


def describe_v1() -> None:
    """Put the descriptor of v1 into the default pool, so that reflection can describe itself. Idempotent."""
    pool = descriptor_pool.Default()
    try:
        pool.FindFileByName(_V1_FILE)
    except KeyError:
        file = descriptor_pb2.FileDescriptorProto()
        reflection_pb2.DESCRIPTOR.CopyToProto(file)
        file.name = _V1_FILE
        file.package = "grpc.reflection.v1"
        _rename(file)
        pool.Add(file)  # both implementations have it


def _rename(file: descriptor_pb2.FileDescriptorProto) -> None:
    for message in file.message_type:
        for field in message.field:
            if field.type_name:  # set only on message and enum fields
                field.type_name = _v1(field.type_name)
    for service in file.service:
        for method in service.method:
            method.input_type = _v1(method.input_type)
            method.output_type = _v1(method.output_type)


def _v1(name: str) -> str:
    return name.replace(".grpc.reflection.v1alpha.", ".grpc.reflection.v1.")


def reflection_handlers(services: Iterable[str]) -> dict[str, Any]:
    """Handlers by method path for both versions, listing `services` and reflection itself."""
    describe_v1()
    servicer = reflection_aio.ReflectionServicer([*services, V1, V1ALPHA])
    handler: Any = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    return {f"/{name}/ServerReflectionInfo": handler for name in (V1, V1ALPHA)}
