"""A request at the door: may this tenant use this model, and is what it sends acceptable (SEL-1, SEL-2).

Nothing here looks at Supplies. A refused request leaves no trace: no Task, no selection, no cost.
"""

from libs.faults.fault import Fault
from services.routing.domain.capability import Misfit, misfits
from services.routing.domain.catalog import Catalog, Model
from services.routing.domain.input_shape import Complaint, complaints, option_complaints, without
from services.routing.domain.request import NO_TERMS, Request
from services.routing.domain.request_facts import Facts, facts_of, normalised


def admit(catalog: Catalog, request: Request) -> Model:
    """The model that the request may use, with everything about it checked.

    Faults: `model_not_published` for one that is unknown or closed, `forbidden` for a tenant that may not use it,
    `validation_failed` with a JSON pointer for every field that is not acceptable.
    """
    model = usable_model(catalog, request)
    validate_request(model, request)
    return model


def usable_model(catalog: Catalog, request: Request) -> Model:
    """SEL-1: the published model that the request's tenant may use. Faults as `admit`."""
    model = catalog.models.get(request.model)
    if model is None or not model.published:
        raise Fault.of("model_not_published", f"model {request.model!r} does not exist or is not published")
    if not may_use(catalog, request.tenant, model):
        raise Fault.of("forbidden", f"tenant {request.tenant!r} may not use model {model.id!r}")
    return model


def may_use(catalog: Catalog, tenant: str, model: Model) -> bool:
    """SEL-1: naming a tenant in the catalogue restricts it; one that is not named may use every published model."""
    known = catalog.tenants.get(tenant)
    return known is None or "*" in known.models or model.id in known.models


def validate_request(model: Model, request: Request) -> None:
    """SEL-2. Fault `validation_failed` with every fault found, or nothing.

    Limits are compared for every field whose shape is right, so that one answer names all that is to be mended.
    """
    wrong = complaints(model.kind, request.input)
    sound = without(request.input, wrong, model.kind)
    given = normalised(model.kind, model.limits, sound)
    beyond = beyond_limits(model, facts_of(model.kind, given))
    found = [*wrong, *beyond, *option_complaints(request), *term_complaints(model, request)]
    if found:
        raise Fault.invalid(*found)


def beyond_limits(model: Model, facts: Facts) -> list[Complaint]:
    """What is needed beyond the limits of the model."""
    return [_limit(misfit) for misfit in misfits(model.limits, facts)]


def term_complaints(model: Model, request: Request) -> list[Complaint]:
    """What is wrong with the terms that a Task was handed over under."""
    terms, found = request.terms or NO_TERMS, []
    bound = sorted(binding.supply for binding in model.bindings)
    if terms.supply and terms.supply not in bound:
        words = f"{terms.supply!r} is not bound to model {model.id!r}; name one of {', '.join(bound) or 'none'}"
        found.append(("/options/supply_id", words))
    if terms.max_attempts < 0:
        found.append(("/options/max_attempts", "must be at least 1, or 0 for what the policy permits"))
    for name, given in (("stage", terms.stage), ("blocking", terms.blocking)):
        if given < 0:
            found.append((f"/options/{name}", "must not be negative"))
    return found


def _limit(misfit: Misfit) -> Complaint:
    return f"/input/{misfit.field}", f"needs {misfit.needs}, the model admits {misfit.admits}"
