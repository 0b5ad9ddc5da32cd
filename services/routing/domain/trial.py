"""The model under which one Supply is tried by itself (CAT-7).

A regression set has to reach one Supply, whatever models bind it and whether they are published. So there is a model
for each Supply that no file declares: it binds that Supply alone, exactly, under a policy of its own. Its name holds a
sign that no id of a catalogue may hold; callers cannot ask for it, because admission knows declared models alone.
"""

from services.routing.domain.catalog import Binding, Catalog, Model, Order, Policy, Tier

MARK = "verify!"
POLICY = Policy(
    id=MARK, revision=0, order=Order.MANUAL_PRIORITY, min_samples=1, degradation="strict", max_attempts=1,
    when_full="wait", sync={"max_attempts": 1, "quota_full": "wait"},
)  # fmt: skip


def trial_of(supply: str) -> str:
    """The name of the model under which a Supply is tried."""
    return MARK + supply


def model_in(catalog: Catalog, name: str) -> Model | None:
    """The model of that name, declared or the trial of one Supply; None if there is none."""
    if not name.startswith(MARK):
        return catalog.models.get(name)
    supply = catalog.supplies.get(name.removeprefix(MARK))
    if supply is None:
        return None
    bound = (Binding(supply.id, Tier.EXACT),)
    return Model(name, supply.revision, supply.kind, POLICY.id, enabled=True, published=True, bindings=bound)


def policy_in(catalog: Catalog, model: Model) -> Policy | None:
    """The policy of a model; None if the catalogue does not name it."""
    return POLICY if model.policy == POLICY.id else catalog.policies.get(model.policy)
