"""Provider adapter: the dialects, and the only sockets outward.

Owns the adapters (`adapters/<provider>`: a manifest, pure pairs of build and parse, a table of faults), the driver that
carries their requests, the judgement of what a failure means, and the way of media between providers and blobs.
Its nouns: Adapter, Job, Exchange, Outcome, Clue, Judgement.

It keeps no state: every call brings the channel, the job and, where one exists, the provider's task id.
It refuses to choose, to retry a submission, to count health or to hold money: it says what was sent, what was heard
and what that proves, and leaves the rest to routing.
"""
