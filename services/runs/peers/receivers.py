"""Other people's servers, over the guarded fetcher."""

from collections.abc import Mapping

from libs.fetching.fetcher import Fetcher, NotAllowed, Unreachable
from services.runs.domain.callbacks import Sent

JSON = {"Content-Type": "application/json"}


class HttpReceivers:
    """Implements `ports.Receivers`."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher

    async def send(self, url: str, body: bytes, headers: Mapping[str, str]) -> Sent:
        """See the port."""
        try:
            return Sent(await self._fetcher.send(url, body, {**JSON, **headers}))
        except NotAllowed as error:
            return Sent(error=f"the callback_url {error}", final=True)
        except Unreachable as error:
            return Sent(error=f"the callback_url {error}")

    async def close(self) -> None:
        """Close what is open."""
        await self._fetcher.close()
