"""The configuration: what a studio can be started with, and what is refused."""

import copy

import pytest
import yaml

from services.studio.domain import markers
from services.studio.domain.accounts import MOTIFS
from services.studio.domain.refusals import Reason
from services.studio.media import motifs
from services.studio.settings import DEFAULT_FILE, SettingsError, StudioConfig

SOURCE = yaml.safe_load(DEFAULT_FILE.read_text())


def test_the_shipped_accounts_differ_in_look_speed_and_price():
    """Accounts can be told apart at a glance, and give a dispatcher something to choose from."""
    accounts = StudioConfig.default().accounts
    drawing = [one for one in accounts.values() if any(model.draws for model in one.models.values())]
    assert len({account.style.motif for account in drawing}) == len(drawing)
    assert len({account.key for account in accounts.values()}) == len(accounts)
    aurora, boreal = accounts["aurora"], accounts["boreal"]
    model = "doubao-seedance-2-0-260128"
    assert aurora.render_s < boreal.render_s
    lumen, moss = accounts["lumen"], accounts["moss"]
    assert lumen.first_token_s < moss.first_token_s
    assert lumen.tokens_per_s > moss.tokens_per_s
    assert set(lumen.models) == set(moss.models)
    assert aurora.models[model].price.rate > boreal.models[model].price.rate
    assert set(MOTIFS) == set(motifs.MOTIFS)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda source: source.pop("accounts"),
        lambda source: source.update(acounts=[]),
        lambda source: source["accounts"].append(source["accounts"][0]),
        lambda source: source["defaults"].update(ark="dahlia"),
        lambda source: source["accounts"][0].update(id="lab"),
        lambda source: source["accounts"][0].update(dialect="morse"),
        lambda source: source["accounts"][0].update(colour="red"),
        lambda source: source["accounts"][0].pop("style"),
        lambda source: source["accounts"][0]["style"].update(motif="cubes"),
        lambda source: source["accounts"][0]["models"][0].update(kind="smell"),
        lambda source: source["accounts"][0]["models"][0]["price"].update(rate="cheap"),
        lambda source: source["accounts"][0]["models"][0]["price"].update(unit="hour"),
    ],
)
def test_a_configuration_with_a_mistake_is_refused(spoil):
    """Every mistake is an error at start, none is guessed around."""
    source = copy.deepcopy(SOURCE)
    spoil(source)
    with pytest.raises(SettingsError):
        StudioConfig.from_mapping(source)


def test_markers_refuse_early_or_late_and_spare_accounts_that_allow_persons():
    """Each marker has its own reason; the real-person ones bite only where persons are refused."""
    assert markers.early("a [Moderated] scene", "allowed") is Reason.CONTENT_INPUT
    assert markers.early("forbidden:nsfw", "refused") is Reason.CONTENT_INPUT
    assert markers.early("[real-person]", "refused") is Reason.PERSON_INPUT
    assert markers.early("[real-person]", "allowed") is None
    assert markers.early("[moderated-late]", "refused") is None
    assert markers.late("[moderated-late]", "allowed") is Reason.CONTENT_OUTPUT
    assert markers.late("[real-person-late]", "refused") is Reason.PERSON_OUTPUT
    assert markers.late("a quiet scene", "refused") is None
