"""Puts the context together: the only module that knows both its inside and its machines."""

from typing import Any

from libs.blobs.opening import open_blobs
from libs.host.hosted import ComposedContext
from libs.kernel.world import World
from pointsman.provider_adapter.v1.provider_service_pb2_grpc import add_ProviderServiceServicer_to_server
from services.provider_adapter.adapters.registry import ADAPTERS
from services.provider_adapter.app.cancel import CancelJob
from services.provider_adapter.app.classify import ClassifyFailure
from services.provider_adapter.app.conversation import Conversation
from services.provider_adapter.app.invoke import InvokeCall
from services.provider_adapter.app.media import MediaWorks
from services.provider_adapter.app.poll import PollJob
from services.provider_adapter.app.reconcile import ReconcileJob
from services.provider_adapter.app.stream import StreamCall
from services.provider_adapter.app.submit import SubmitJob
from services.provider_adapter.driver import HttpDriver
from services.provider_adapter.ports import MediaStore, Secrets, Transport
from services.provider_adapter.servicer import ProviderServicer, UseCases
from services.provider_adapter.settings import Settings
from services.provider_adapter.store.media import BlobMedia
from services.provider_adapter.store.secrets import ReferencedSecrets

NAME = "provider_adapter"
SERVICE = "pointsman.provider_adapter.v1.ProviderService"


def build(settings: Settings, channels: Any, world: World) -> ComposedContext:
    """The context, not yet at work. It calls no other context, so it takes no channel."""
    driver = HttpDriver(
        answer_bytes=settings.answer_bytes, connect_s=settings.timeouts.connect_s, media_s=settings.media_s
    )
    context = assemble(
        driver,
        BlobMedia(open_blobs(settings.blobs_address)),
        ReferencedSecrets(settings.environment),
        settings,
        world,
    )
    context.begin = (driver.open,)
    context.finish = (*context.finish, driver.close)
    return context


def assemble(
    transport: Transport, store: MediaStore, secrets: Secrets, settings: Settings, world: World
) -> ComposedContext:
    """The context over a way outward, a store of media and secrets of the caller's choice."""
    media = MediaWorks(transport, store, world, settings)
    conversation = Conversation(transport, secrets, world.clock, settings.margin_s)
    submit = SubmitJob(conversation, media)
    servicer = ProviderServicer(
        UseCases(
            submit=submit,
            poll=PollJob(conversation, media),
            cancel=CancelJob(conversation),
            reconcile=ReconcileJob(conversation, submit, world.clock, settings),
            invoke=InvokeCall(conversation, submit, media, world.clock),
            stream=StreamCall(conversation, media, world.clock),
            classify=ClassifyFailure(world.clock),
            secrets=secrets,
            adapters=ADAPTERS,
            timeouts=settings.timeouts,
        )
    )
    return ComposedContext(
        NAME,
        ((SERVICE, lambda server: add_ProviderServiceServicer_to_server(servicer, server)),),
        finish=(media.stop,),
    )
