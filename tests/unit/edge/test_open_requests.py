"""Places of tenants: taken, weighed and given back, without a server."""

import pytest

from libs.faults.fault import Fault
from libs.host.placement import PlacementError
from services.edge.app.open_requests import OpenRequests, Place
from services.edge.domain.open_limits import BODY_MIB, MIB, VARIABLES, Hold, OpenLimits
from services.edge.settings import Settings

TWO = OpenLimits(streams=2, joins=2, calls=2, bodies=2, body_bytes=100)


def refusal(open_requests: OpenRequests, tenant: str, hold: Hold) -> Fault:
    """Of one place too many."""
    with pytest.raises(Fault) as caught:
        open_requests.take(tenant, hold)
    return caught.value


@pytest.mark.parametrize("hold", Hold)
def test_a_tenant_has_its_places_and_no_more(hold: Hold) -> None:
    """AUTH-2: one too many is quota_exceeded with the limit, a remedy and a time; others, and other sorts, go on."""
    open_requests = OpenRequests(TWO)
    first, second = open_requests.take("a", hold), open_requests.take("a", hold)
    fault = refusal(open_requests, "a", hold)
    assert (fault.code, fault.retryable, fault.retry_after_ms) == ("quota_exceeded", True, 2000)
    assert f"'a' has 2 of 2 {hold} open at this server; " in fault.message
    assert fault.message.endswith(f"or ask the operator to raise {VARIABLES[hold]}")
    other = open_requests.take("b", hold)
    for sort in set(Hold) - {hold}:
        open_requests.take("a", sort).release()
    first.release()
    first.release()
    assert open_requests.held("a", hold) == 1, "giving back twice is once"
    third = open_requests.take("a", hold)
    assert refusal(open_requests, "a", hold).code == "quota_exceeded"
    for place in (second, third, other):
        place.release()
    assert not open_requests._held


def test_bodies_share_their_bytes() -> None:
    """AUTH-2: all bodies of a tenant in memory have one bound, and what is refused leaves nothing behind."""
    open_requests = OpenRequests(TWO)

    def taken() -> Place:
        return open_requests.take("a", Hold.BODY)

    first = taken()
    for size in (60, 20, 80):  # announced; then what has come so far
        first.weigh(size)
    assert open_requests.bytes_held("a") == 80
    second = open_requests.take("a", Hold.CALL)
    with pytest.raises(Fault, match=r"hold 80 of 100 bytes.*POINTSMAN_TENANT_BODY_MIB") as caught:
        second.weigh(21)
    assert caught.value.code == "quota_exceeded"
    second.weigh(20)
    open_requests.take("b", Hold.BODY).weigh(100)
    first.release()
    second.release()
    assert (open_requests.bytes_held("a"), open_requests.bytes_held("b")) == (0, 100)


def test_nought_is_no_limit() -> None:
    """AUTH-2: 0 lets everybody in."""
    open_requests = OpenRequests(OpenLimits(0, 0, 0, 0, 0))
    places = [open_requests.take("a", hold) for hold in Hold for _ in range(50)]
    places[-1].weigh(1 << 40)
    assert open_requests.held("a", Hold.STREAM) == 50


def test_limits_from_the_environment() -> None:
    """OPS-1: each limit has a variable and a default; what is none is refused by the variable's name."""
    env = {"POINTSMAN_DATABASE_URL": "memory:"}
    assert Settings.from_env(env).open_limits == OpenLimits(2000, 2000, 1000, 1000, 512 * MIB)
    told = {variable: str(number) for number, variable in enumerate(VARIABLES.values(), 1)} | {BODY_MIB: "64"}
    assert Settings.from_env(env | told).open_limits == OpenLimits(1, 2, 3, 4, 64 * MIB)
    assert Settings.from_env(env | {BODY_MIB: "0"}).open_limits.body_bytes == 0
    for variable in (*VARIABLES.values(), BODY_MIB):
        for text in ("-1", "x", "1.5", "1000001", "١"):
            with pytest.raises(PlacementError, match=variable):
                Settings.from_env(env | {variable: text})
    with pytest.raises(PlacementError, match="one body may have 64 MiB"):
        Settings.from_env(env | {BODY_MIB: "63"})
