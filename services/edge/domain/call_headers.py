"""What an answer says about its call in headers, for clients that know only the body's foreign shape."""

from urllib.parse import quote

from services.edge.domain.calls import Receipt

PREFIX = b"pointsman-"
SAFE = "/:;@!$&'()*+=,-._~ "


def headers_of(receipt: Receipt) -> dict[str, str]:
    """Supply, cost, whether the cache answered, and what degradation changed."""
    told: dict[str, str] = {}
    if receipt.supply:
        told["pointsman-supply"] = quote(receipt.supply, SAFE)
    if receipt.cost is not None:
        told["pointsman-cost"] = f"{receipt.cost.amount} {receipt.cost.currency}"
    if receipt.cached:
        told["pointsman-cache"] = "hit"
    if receipt.degraded:
        told["pointsman-degraded"] = "true"
        told["pointsman-requested-profile"] = quote(receipt.requested_profile, SAFE)
        told["pointsman-actual-profile"] = quote(receipt.actual_profile, SAFE)
        told["pointsman-dropped-inputs"] = quote(",".join(receipt.dropped_inputs), SAFE)
    return told


def said_in(raw: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Our own headers of a request, by their lower-case names; mostly none."""
    return {name.decode("latin-1"): value.decode("latin-1").strip() for name, value in raw if name.startswith(PREFIX)}
