"""What applying a file comes to: new revisions, changes, and every model's standing (CAT-1 to CAT-3). Pure.

Laws of this file:
- all or nothing: a file with a fault never comes here;
- an object gets a new revision when its declaration, or what was granted to it, changes; else it keeps its old one;
- a model whose bindings or policy changed loses `enabled` and `published` first; then the file's own
  `published: true` is taken through the gate (CAT-3);
- what an operator said since (admin state, a publish) stands until the *file* changes its word on the same thing:
  applying the same file again, as every start does, overrules nobody.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from libs.kernel.canonical import canonical_json
from services.routing.domain.catalog import Catalog, Model
from services.routing.domain.catalog_diff import Change, differences
from services.routing.domain.catalog_file import CatalogFile, Declared, ObjectKind
from services.routing.domain.catalog_history import Holdings, Key, ObjectRevision
from services.routing.domain.publication import Reason, Standing, Surroundings, gate

NOT_ENABLED: Reason = ("enabled", "the declaration says enabled: false")
NOT_ASKED: Reason = ("published", "the declaration does not ask for it; publish the model to open it")
PASSES: Reason = ("published", "it passes the publish gate; publish the model to open it")
CLEARED: Reason = ("published", "bindings or policy changed; publish the model again to open it")


@dataclass(frozen=True, slots=True)
class Plan:
    """The outcome. `revisions` are new ones only; when there are none, nothing is to be written."""

    holdings: Holdings
    catalog: Catalog
    revisions: tuple[ObjectRevision, ...]
    changes: tuple[Change, ...]
    standings: tuple[Standing, ...]


def plan_apply(before: Holdings, file: CatalogFile, merge: bool, around: Surroundings, now: datetime) -> Plan:
    """Apply a faultless file to what is in force."""
    revision = before.revision + 1
    drafts: dict[Key, ObjectRevision] = {}
    named: set[Key] = set()
    for declared in file.declared:
        named.add((declared.kind, declared.id))
        draft = _declared(before, declared, revision, now)
        if draft is not None:
            drafts[draft.key] = draft
    if not merge:
        for key, head in before.heads.items():
            if key not in named and not head.retired:
                drafts[key] = _next(head, revision, now, retired=True, enabled=False, published=False)
    fx = {**before.fx, **file.fx} if merge else dict(file.fx)
    after = Holdings(revision, file.currency_over(before.currency if merge else None), fx, {**before.heads, **drafts})
    asked = {d.id: d.spec for d in file.of_kind(ObjectKind.MODEL)}
    return _granted(before, after, drafts, asked, around, now)


def plan_publish(before: Holdings, model_id: str, around: Surroundings, now: datetime) -> tuple[Plan, Standing]:
    """Publish one live model: the plan, with no new revision where it fails the gate or is open already."""
    head = before.heads[(ObjectKind.MODEL, model_id)]
    after = replace(before, revision=before.revision + 1)
    standing = _standing(head, after.catalog(), around)
    drafts = {}
    if standing.published and not (head.enabled and head.published):
        drafts[head.key] = _next(head, after.revision, now, enabled=True, published=True)
    return _finished(before, replace(after, heads={**before.heads, **drafts}), drafts, (standing,)), standing


def plan_admin(before: Holdings, key: Key, state: str, note: str, now: datetime) -> Plan:
    """An operator's word on one live Channel or Supply."""
    head = before.heads[key]
    word = "" if head.spec.get("admin", "enabled") == state else state
    revision = before.revision + 1
    drafts = {} if word == head.admin else {key: _next(head, revision, now, admin=word, note=note)}
    return _finished(before, replace(before, revision=revision, heads={**before.heads, **drafts}), drafts, ())


def _declared(before: Holdings, declared: Declared, revision: int, now: datetime) -> ObjectRevision | None:
    """The new revision of a declared object; None where the declaration is what it was."""
    head = before.heads.get((declared.kind, declared.id))
    if head is None:
        return ObjectRevision(declared.kind, declared.id, 1, declared.spec, now, revision)
    if not head.retired and _same(head.spec, declared.spec):
        return None
    kept = head.admin if not head.retired and head.spec.get("admin") == declared.spec.get("admin") else ""
    return _next(head, revision, now, spec=declared.spec, retired=False, admin=kept)


def _next(head: ObjectRevision, catalog_revision: int, now: datetime, **changes: Any) -> ObjectRevision:
    changes.setdefault("note", "")
    return replace(head, revision=head.revision + 1, created_at=now, catalog_revision=catalog_revision, **changes)


def _same(one: Any, other: Any) -> bool:
    return canonical_json(one) == canonical_json(other)


def _granted(
    before: Holdings,
    after: Holdings,
    drafts: dict[Key, ObjectRevision],
    asked: Mapping[str, Mapping[str, Any]],
    around: Surroundings,
    now: datetime,
) -> Plan:
    """Decide `enabled` and `published` of every model, then finish."""
    catalog = after.catalog()
    standings = []
    for head in after.live(ObjectKind.MODEL):
        held = before.heads.get(head.key)
        held = held if held is not None and not held.retired else None
        enabled, published = (held.enabled, held.published) if held else (False, False)
        cleared = held is not None and published and _saved(held, head, drafts)
        if held is None or _saved(held, head, drafts):
            enabled = published = False
        spec = asked.get(head.id, {})
        wants = _wants(spec, held, published)
        standing = Standing(head.id, published)
        if wants and (not published or _touched(catalog.models[head.id], catalog, drafts)):
            standing = _standing(head, catalog, around)
            published = standing.published
        elif not wants:
            published, standing = False, Standing(head.id, False, (CLEARED if cleared else NOT_ASKED,))
        enabled = published or (enabled if head.spec.get("enabled") is None else bool(head.spec["enabled"]))
        standings.append(standing)
        if (enabled, published) != (head.enabled, head.published):
            base = drafts.get(head.key) or _next(head, after.revision, now)
            drafts[head.key] = replace(base, enabled=enabled, published=published)
    return _finished(before, replace(after, heads={**after.heads, **drafts}), drafts, standings)


def _saved(held: ObjectRevision, head: ObjectRevision, drafts: Mapping[Key, ObjectRevision]) -> bool:
    """CAT-3: whether a binding or the policy of the model changed."""
    if not _same(held.spec.get("bindings"), head.spec.get("bindings")):
        return True
    policy = head.spec.get("policy")
    return held.spec.get("policy") != policy or (ObjectKind.POLICY, str(policy)) in drafts


def _touched(model: Model, catalog: Catalog, drafts: Mapping[Key, ObjectRevision]) -> bool:
    """Whether anything that the gate looks at changed in this apply."""
    keys: set[Key] = {(ObjectKind.MODEL, model.id), (ObjectKind.POLICY, model.policy)}
    for binding in model.bindings:
        keys |= {(ObjectKind.SUPPLY, binding.supply), (ObjectKind.DEGRADATION_RULE, binding.rule)}
        supply = catalog.supplies.get(binding.supply)
        if supply is not None:
            keys.add((ObjectKind.CHANNEL, supply.channel))
    return not keys.isdisjoint(drafts)


def _wants(spec: Mapping[str, Any], held: ObjectRevision | None, published: bool) -> bool:
    """Whether the model is to be open: the file's word where it is new, else what stands."""
    said = spec.get("published")
    if said is True or said is None or held is None:
        return bool(said) or published
    return published and held.spec.get("published") is False


def _standing(head: ObjectRevision, catalog: Catalog, around: Surroundings) -> Standing:
    reasons = gate(catalog.models[head.id], catalog, around)
    if head.spec.get("enabled") is False:
        reasons = (NOT_ENABLED, *reasons)
    return Standing(head.id, not reasons, reasons)


def standing_now(head: ObjectRevision, catalog: Catalog, around: Surroundings) -> Standing:
    """How a model that is closed stands: every reason against publishing it, or that nobody has asked for it."""
    standing = _standing(head, catalog, around)
    return Standing(head.id, False, standing.reasons or (PASSES,))


def _finished(
    before: Holdings, after: Holdings, drafts: Mapping[Key, ObjectRevision], standings: Iterable[Standing]
) -> Plan:
    settings = (before.currency, before.fx) != (after.currency, after.fx)
    if not drafts and not settings and before.revision:
        after = before
    changes = tuple(_change(before.heads.get(key), draft) for key, draft in sorted(drafts.items()))
    return Plan(after, after.catalog(), tuple(draft for _, draft in sorted(drafts.items())), changes, tuple(standings))


def _change(head: ObjectRevision | None, draft: ObjectRevision) -> Change:
    if draft.retired:
        return Change(draft.kind, draft.id, "retired")
    if head is None or head.retired:
        return Change(draft.kind, draft.id, "created")
    return Change(draft.kind, draft.id, "changed", differences(_shown(head), _shown(draft)))


def _shown(revision: ObjectRevision) -> Mapping[str, Any]:
    """The declaration, with what was granted in place of what was asked for."""
    spec = dict(revision.effective_spec)
    if revision.kind is ObjectKind.MODEL:
        spec |= {"enabled": revision.enabled, "published": revision.published}
    return spec
