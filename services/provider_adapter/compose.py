"""Puts the context together: the only module that knows both its inside and its machines."""

from typing import Any

from libs.blobs.opening import open_blobs
from libs.fetching.fetcher import Fetcher, rules_of
from libs.host.hosted import ComposedContext
from libs.kernel.world import World
from libs.materials.intake import Intake
from pointsman.provider_adapter.v1.provider_service_pb2_grpc import add_ProviderServiceServicer_to_server
from services.provider_adapter.adapters.quality import QUALITY
from services.provider_adapter.adapters.registry import ADAPTERS
from services.provider_adapter.app.cancel import CancelJob
from services.provider_adapter.app.classify import ClassifyFailure
from services.provider_adapter.app.conversation import Conversation
from services.provider_adapter.app.invoke import InvokeCall
from services.provider_adapter.app.materials import ArtifactsOnly, Materials
from services.provider_adapter.app.media import MediaWorks
from services.provider_adapter.app.poll import PollJob
from services.provider_adapter.app.reconcile import ReconcileJob
from services.provider_adapter.app.stream import StreamCall
from services.provider_adapter.app.submit import SubmitJob
from services.provider_adapter.driver import HttpDriver
from services.provider_adapter.ports import MaterialIntake, MediaStore, Secrets, Transport
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
    blobs = open_blobs(settings.blobs_address)
    intake = Intake(Fetcher(rules_of(settings.allow_private_urls)), blobs)
    context = assemble(driver, BlobMedia(blobs), ReferencedSecrets(settings.environment), settings, world, intake)
    context.begin = (driver.open,)
    context.finish = (*context.finish, driver.close, intake.close)
    return context


def assemble(
    transport: Transport,
    store: MediaStore,
    secrets: Secrets,
    settings: Settings,
    world: World,
    intake: MaterialIntake | None = None,
) -> ComposedContext:
    """The context over ways outward, a store of media and secrets of the caller's choice; without an intake, materials
    are artifacts alone."""
    media = MediaWorks(transport, store, world, settings)
    materials = Materials(store, intake or ArtifactsOnly(), settings.links, world.clock, settings.material_bytes)
    conversation = Conversation(transport, secrets, world.clock, settings.margin_s)
    submit = SubmitJob(conversation, materials, media)
    servicer = ProviderServicer(
        UseCases(
            submit=submit,
            poll=PollJob(conversation, media),
            cancel=CancelJob(conversation),
            reconcile=ReconcileJob(conversation, submit, world.clock, settings),
            invoke=InvokeCall(conversation, submit, world.clock),
            stream=StreamCall(conversation, materials, world.clock),
            classify=ClassifyFailure(world.clock),
            secrets=secrets,
            adapters=ADAPTERS,
            quality=QUALITY,
            timeouts=settings.timeouts,
        )
    )
    return ComposedContext(
        NAME,
        ((SERVICE, lambda server: add_ProviderServiceServicer_to_server(servicer, server)),),
        finish=(media.stop,),
    )
