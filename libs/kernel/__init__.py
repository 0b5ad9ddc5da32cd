"""Words and values that every context shares: time, ids, chance, money, deadlines, canonical JSON.

Owns the protocols `Clock`, `Ids`, `Rng` and the `World` that carries them, and plain immutable values.
Refuses to know any machine: the standard library only, and no real clock (real ones live in `libs.host`,
simulated ones in tests), so that deciding code stays pure and replayable.
"""
