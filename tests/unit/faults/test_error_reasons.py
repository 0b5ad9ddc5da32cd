"""The registry and the contract name the same failures."""

from libs.faults.registry import CODES
from pointsman.common.v1.error_reason_pb2 import ErrorReason


def test_every_code_is_a_reason_of_the_contract_and_none_is_left_over() -> None:
    """ERR-3: the enum of the contract and the registry hold the same codes."""
    names = ErrorReason.DESCRIPTOR.values_by_name
    reasons = {name.removeprefix("ERROR_REASON_").lower() for name in names} - {"unspecified"}
    assert reasons == set(CODES)
