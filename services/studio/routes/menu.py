"""What is served in each dialect: method, path below the dialect's base, handler."""

from __future__ import annotations

from services.studio.desk import Desk
from services.studio.dialects import kling
from services.studio.renders import Renders
from services.studio.routes.door import Handler
from services.studio.routes.kling_tasks import KlingRoutes
from services.studio.routes.minimax_tasks import MiniMaxRoutes
from services.studio.routes.ocr import OcrRoutes
from services.studio.routes.queues import DashScopeRoutes, FalRoutes, OpenAIVideoRoutes, ReplicateRoutes
from services.studio.routes.talk import TalkRoutes
from services.studio.routes.tasks import TaskRoutes
from services.studio.routes.works import WorkRoutes

Menu = list[tuple[str, str, Handler]]


def menu(dialect: str, desk: Desk, renders: Renders) -> Menu:
    """Everything that an account of that dialect serves."""
    match dialect:
        case "ark":
            return _ark(TaskRoutes(desk, renders), WorkRoutes(desk))
        case "dashscope":
            return DashScopeRoutes(desk, renders).menu()
        case "fal":
            return FalRoutes(desk, renders).menu()
        case "kling":
            return _kling(KlingRoutes(desk, renders))
        case "local-ocr":
            return [("POST", "/ocr", OcrRoutes(desk).read)]
        case "minimax":
            return _minimax(MiniMaxRoutes(desk, renders))
        case "replicate":
            return ReplicateRoutes(desk, renders).menu()
    return [*_openai(WorkRoutes(desk), TalkRoutes(desk)), *OpenAIVideoRoutes(desk, renders).menu()]


def _ark(tasks: TaskRoutes, works: WorkRoutes) -> Menu:
    path = "/contents/generations/tasks"
    return [
        ("POST", path, tasks.create),
        ("GET", path, tasks.list),
        ("GET", f"{path}/{{task_id}}", tasks.get),
        ("DELETE", f"{path}/{{task_id}}", tasks.delete),
        ("POST", "/images/generations", works.ark_images),
    ]


def _kling(tasks: KlingRoutes) -> Menu:
    return [
        entry
        for path in kling.ROUTES
        for entry in (
            ("POST", path, tasks.create),
            ("GET", path, tasks.list),
            ("GET", f"{path}/{{task_id}}", tasks.get),
        )
    ]


def _minimax(tasks: MiniMaxRoutes) -> Menu:
    return [
        ("POST", "/v1/video_generation", tasks.create),
        ("GET", "/v1/query/video_generation", tasks.ask),
        ("GET", "/v1/files/retrieve", tasks.file),
        ("POST", "/v2/video_generation", tasks.create),
        ("GET", "/v2/query/video_generation", tasks.list),
        ("GET", "/v2/query/video_generation/{task_id}", tasks.get),
        ("DELETE", "/v2/video_generation/{task_id}", tasks.delete),
    ]


def _openai(works: WorkRoutes, talk: TalkRoutes) -> Menu:
    return [
        ("GET", "/models", works.models),
        ("GET", "/models/{model:path}", works.one_model),
        ("POST", "/chat/completions", talk.chat),
        ("POST", "/embeddings", talk.embeddings),
        ("POST", "/images/generations", works.openai_images),
        ("POST", "/images/edits", works.openai_images),
        ("POST", "/audio/speech", works.speech),
    ]
