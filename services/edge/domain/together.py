"""Several faults of one body, told as one."""

from collections.abc import Sequence

from libs.faults.fault import Fault

FIRST = ("url_not_allowed", "validation_failed", "material_unreachable")
"""Codes in the order in which one of several is the answer's."""


def together(faults: Sequence[Fault]) -> Fault:
    """One fault with the fields of all, each once and in order; at least one, and each names fields."""
    codes = {fault.code for fault in faults}
    code = next((code for code in FIRST if code in codes), faults[0].code)
    named = dict.fromkeys((error.pointer, error.reason) for fault in faults for error in fault.errors)
    return Fault.invalid(*named, code=code)
