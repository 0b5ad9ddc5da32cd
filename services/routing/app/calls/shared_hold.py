"""One Hold that many calls draw on: its books, without its bank."""

from decimal import Decimal


class SharedHold:
    """What the ledger holds for calls that come within a few seconds, and what they have drawn of it.

    Laws of this file:
    - what calls under way have drawn and what ended ones have cost never come to more than is held (COST-9), but for
      what is claimed by a call for which nothing is sent until it is held;
    - a call draws before it is sent, and has drawn until its end is on record;
    - `sound` is False for ever once the end of one of them is not known to be on record: then only the records tell
      what it has cost in all.
    """

    __slots__ = ("_tries_left", "_used", "calls", "currency", "held", "id", "open", "sound", "spent", "tries", "until")

    def __init__(self, name: str, currency: str, held: Decimal, tries: int, until: float) -> None:
        self.id = name
        self.currency = currency
        self.held = held
        self.until = until
        """Monotonic seconds; no call draws on it for the first time from then on."""
        self.calls = self.open = self.tries = 0
        """Those that ever drew on it, those that have not ended, and the tries of those that have."""
        self.spent = Decimal(0)
        self.sound = True
        self._used = Decimal(0)
        self._tries_left = tries

    def draw(self, amount: Decimal, tries: int) -> bool:
        """For a call that comes now; False, and nothing is drawn, where there is no room."""
        if tries > self._tries_left or amount > self.held - self._used:
            return False
        self.calls += 1
        self.open += 1
        self._tries_left -= tries
        self._used += amount
        return True

    def add(self, more: Decimal) -> bool:
        """For one that has drawn before and comes to more; False where there is no room."""
        if more > self.held - self._used:
            return False
        self._used += more
        return True

    def claim(self, more: Decimal) -> Decimal:
        """Draw it although there is no room: nothing may be sent for it before what is answered is held in all. What
        others claim meanwhile comes on top, and nobody draws until there is room for all."""
        self._used += more
        return self._used

    def covered(self, held: Decimal) -> None:
        """So much is held in all, or more."""
        self.held = max(self.held, held)

    def ended(self, drawn: Decimal, cost: Decimal, tries: int) -> None:
        """A call is on record with that cost; what it has drawn beyond is there for others."""
        self._used += cost - drawn
        self.spent += cost
        self.tries += tries
        self.open -= 1

    def lost(self) -> None:
        """A call has ended, and its record is not known to be kept."""
        self.sound = False
        self.open -= 1
