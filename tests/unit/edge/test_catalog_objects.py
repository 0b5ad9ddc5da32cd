"""What operators read of the catalogue's objects."""

import pytest

from libs.rpc.values import struct_from
from pointsman.routing.v1 import catalog_pb2
from services.edge.wire.catalog import catalog_object


@pytest.mark.parametrize(
    ("kind", "spec", "flag", "expected"),
    [
        (catalog_pb2.CATALOG_KIND_SUPPLY, {}, False, True),
        (catalog_pb2.CATALOG_KIND_SUPPLY, {"admin": "draining"}, False, False),
        (catalog_pb2.CATALOG_KIND_CHANNEL, {"admin": "disabled"}, False, False),
        (catalog_pb2.CATALOG_KIND_MODEL, {}, True, True),
        (catalog_pb2.CATALOG_KIND_MODEL, {}, False, False),
    ],
)
def test_enabled_means_what_an_operator_expects(
    kind: catalog_pb2.CatalogKind.ValueType, spec: dict[str, str], flag: bool, expected: bool
) -> None:
    """CAT-5: a Channel or Supply is enabled by its administrative state, a model by its own flag."""
    message = catalog_pb2.CatalogObject(kind=kind, id="x", revision=1, spec=struct_from(spec), enabled=flag)
    assert catalog_object(message).enabled is expected
