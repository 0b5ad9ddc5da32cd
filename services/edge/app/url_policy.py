"""The URL policy of this release: it judges the words, and leaves what names resolve to to whoever connects."""

from services.edge.domain.urls import private_reason


class LiteralUrlPolicy:
    """Implements `ports.UrlPolicy`. `allow_private` lets everything pass, for development only."""

    def __init__(self, allow_private: bool) -> None:
        self._allow_private = allow_private

    async def refusal(self, url: str) -> str | None:
        """See the port."""
        return None if self._allow_private else private_reason(url)
