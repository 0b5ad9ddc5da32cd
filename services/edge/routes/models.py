"""/v1/models: what this key may use (OAI-2), in OpenAI's list shape and more."""

from starlette.responses import Response

from libs.faults.fault import Fault
from services.edge.domain import shapes
from services.edge.domain.calls import SYNCHRONOUS
from services.edge.ports import Catalog
from services.edge.routes.answers import answer
from services.edge.routes.operations import CALLERS, READERS, Asked, Operation


class ModelRoutes:
    """The handlers with what they need."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    async def list(self, asked: Asked) -> Response:
        """All of them, in the order of their ids."""
        return answer(shapes.ModelList("list", await _usable(self._catalog, asked)))

    async def get(self, asked: Asked) -> Response:
        """One of them."""
        model_id = asked.path("model_id")
        for model in await _usable(self._catalog, asked):
            if model.id == model_id:
                return answer(model)
        raise Fault.of("model_not_published", f"model {model_id[:100]!r} is not published")

    def operations(self) -> tuple[Operation, ...]:
        """What is served."""
        return (
            Operation(
                "listModels", "GET", "/v1/models", self.list, "The models that this key may use.", READERS,
                answer=shapes.ModelList,
            ),
            Operation(
                "getModel", "GET", "/v1/models/{model_id:path}", self.get, "One of them.", READERS,
                answer=shapes.Model, codes=("model_not_published",),
            ),
        )  # fmt: skip


async def _usable(catalog: Catalog, asked: Asked) -> list[shapes.Model]:
    """The models of the tenant; for a key that may make calls and nothing else, those that calls serve."""
    models = await catalog.models(asked.tenant)
    calls_alone = asked.caller.scopes == CALLERS
    return [model for model in models if model.kind in SYNCHRONOUS] if calls_alone else models
