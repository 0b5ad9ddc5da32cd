"""The crash sweep: the life of a task or a production, killed with SIGKILL before and after each of its effects, then
started normally.

    python -m tests.e2e.sweep                                   # every effect of every scene, both moments
    python -m tests.e2e.sweep --index switched/provider.POST.2/after

An *effect* is what others can see: a commit that changed something, a call that changes capacity or health, a call to
a provider, a result written. Between two effects nothing outside the process changes, so a death anywhere between them
is the death after the first or before the second. `mortal` is the process that dies, `effects` its counter, `scenes`
what is played, `playing` how it is played and judged, `producing` what people do for a production.
"""
