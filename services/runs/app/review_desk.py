"""The queue of people: look, claim, decide (HUMAN-1..3), and the case files of nodes past their retries (DLQ-1)."""

from collections.abc import Mapping, Sequence
from typing import Any

from libs.faults.fault import Fault
from libs.rpc.paging import id_in, number_in
from services.runs.app.check_change import outlooks, refuse_change
from services.runs.app.command_run import Desk
from services.runs.app.plans import Plans
from services.runs.app.recording import insist
from services.runs.domain import asking, commands, deciding
from services.runs.domain.deciding import Verdict
from services.runs.domain.desks import DeadLetter, Review, ReviewState
from services.runs.domain.history import applied
from services.runs.domain.run import Decision, Draft, Question, Run
from services.runs.ports import Budgets, Desks

Case = tuple[DeadLetter, Sequence[Mapping[str, Any]]]
WAITING = (ReviewState.OPEN, ReviewState.CLAIMED)


class ReviewDesk:
    """Both desks over one store."""

    def __init__(self, desk: Desk, desks: Desks, plans: Plans, budgets: Budgets) -> None:
        self._desk = desk
        self._desks = desks
        self._plans = plans
        self._budgets = budgets

    async def reviews(
        self, tenant: str, states: Sequence[ReviewState], run_id: str, token: str, size: int
    ) -> tuple[list[Review], str]:
        """(Reviews in the order of the queue, token of the next page or "")."""
        offset = number_in(token)
        page = await self._desks.reviews(tenant, states or WAITING, run_id, offset, size + 1)
        return page[:size], str(offset + size) if len(page) > size else ""

    async def review(self, tenant: str, review_id: str) -> Review:
        """One review, whatever became of it. Fault not_found."""
        return await self._find(tenant, review_id)

    async def claim(self, tenant: str, review_id: str, who: str) -> Review:
        """The review, for that person now. Faults: not_found; conflict for one that is over."""
        review = await self._find(tenant, review_id)

        def decide(run: Run) -> Sequence[Draft]:
            asked = _open(run, review)
            return () if asked.assignee == who else commands.claimed(asked.id, asked.node, who)

        await insist(self._desk.recorder, lambda: self._run(review), decide)
        return await self._find(tenant, review_id)

    async def decide(self, tenant: str, review_id: str, verdict: Verdict, subject_hash: str) -> Review:
        """The review, decided. Deciding alike twice is harmless. What is wrong is told before anything is on record.

        Faults: not_found; conflict for a review that is over or whose subject is another by now (GATE-2);
        validation_failed for a decision that is not possible here, lacks what it needs, or could not be carried out.
        """
        review = await self._find(tenant, review_id)
        if review.state is ReviewState.DECIDED and _alike(review, verdict):
            return review
        if subject_hash and subject_hash != review.question.subject_hash:
            raise Fault.of(
                "conflict", f"review {review_id} is about {review.question.subject_hash}, not {subject_hash}"
            )
        run = await self._run(review)
        asked = _open(run, review)
        if wrong := deciding.complaint(asked, verdict, run):
            raise Fault.invalid(wrong)
        await self._refuse_what_cannot_be(run, asked, verdict)

        def decide(run: Run) -> Sequence[Draft]:
            asked = _open(run, review)
            if wrong := deciding.complaint(asked, verdict, run):
                raise Fault.invalid(wrong)
            return deciding.decided(self._plans.of(run), run, asked, verdict)

        await insist(self._desk.recorder, lambda: self._run(review), decide)
        return await self._find(tenant, review_id)

    async def letters(
        self, tenant: str, run_id: str, with_redriven: bool, token: str, size: int
    ) -> tuple[Sequence[Case], str]:
        """(Case files with what was told of their attempts, newest first; token of the next page or "").

        Fault malformed_request for a token that no page gave."""
        page = await self._desks.letters(tenant, run_id, with_redriven, id_in(token), size + 1)
        whole: list[Case] = [
            (letter, await self._desks.attempts_told(letter.run_id, letter.node)) for letter in page[:size]
        ]
        return whole, page[size - 1].id if len(page) > size else ""

    async def letter(self, tenant: str, letter_id: str) -> Case:
        """One case file. Fault not_found."""
        letter = await self._desks.letter(letter_id)
        if letter is None or (tenant and letter.tenant != tenant):
            raise Fault.of("not_found", f"dead letter {letter_id!r} does not exist")
        return letter, await self._desks.attempts_told(letter.run_id, letter.node)

    async def _find(self, tenant: str, review_id: str) -> Review:
        review = await self._desks.review(review_id)
        if review is None or (tenant and review.tenant != tenant):
            raise Fault.of("not_found", f"review {review_id!r} does not exist")
        return review

    async def _run(self, review: Review) -> Run:
        run = await self._desk.runs.get(review.run_id)
        if run is None:
            raise Fault.of("not_found", f"run {review.run_id!r} does not exist")
        return run

    async def _refuse_what_cannot_be(self, run: Run, asked: Question, verdict: Verdict) -> None:
        """Ask those who will have to carry it out: routing for a change, the ledger for a limit."""
        if verdict.decision is Decision.RAISE_BUDGET:
            level = await self._budgets.level(asking.level_of(asked))
            if wrong := deciding.limit_complaint(run, asked, verdict, level):
                raise Fault.invalid(wrong)
        elif verdict.decision in deciding.MADE_AGAIN:
            plan = self._plans.of(run)
            drafts = deciding.decided(plan, run, asked, verdict)
            after = applied(run, drafts, self._desk.world.clock.now())
            changed = drafts[-1].data["changed"]
            for name in changed:
                if missing := commands.what_is_missing(plan, after, after.nodes[name]):
                    raise Fault.invalid((deciding.NODE, missing))
            told = await outlooks(self._desk.routing, plan, after, changed, deciding.NODE)
            refuse_change(told, changed)


def _alike(review: Review, verdict: Verdict) -> bool:
    """Whether that person has said the same before. Another limit, input or supply is another decision (HUMAN-2)."""
    if (review.decision, review.decider) != (verdict.decision, verdict.who):
        return False
    if verdict.decision in deciding.MADE_AGAIN and review.change:
        return review.change == deciding.change_of(verdict)
    return review.limit is None or review.limit == deciding.limit_said(verdict)


def _open(run: Run, review: Review) -> Question:
    asked = run.questions.get(review.id)
    if asked is None:
        raise Fault.of("conflict", f"review {review.id} is over; look at the queue again")
    return asked
