"""Health: may this Channel or Supply be tried now, and if not, why and until when.

Owns the breaker of every Channel and Supply: states, epochs, the ladder back from an open circuit, the immutable
history that folds to the present state, and the success statistics. Its nouns: Subject, Outcome, Observation, Breaker,
Event, Target. It learns subjects and thresholds from the catalogue (ApplyTargets) and outcomes from whoever ran an
Attempt (ReportOutcome).

Refuses to choose a Supply (routing does), to count slots (capacity does) and to call a provider: a probe is an ordinary
Attempt that capacity admits one at a time. Knows no other context.
"""
