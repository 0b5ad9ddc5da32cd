"""Verifications."""

from libs.faults.fault import Fault
from libs.rpc.values import money_to_proto, seconds_of, time_to_proto
from pointsman.routing.v1 import catalog_service_pb2, verification_pb2
from services.routing.domain.verification import Trial, Verification, VerificationState

STATES = {
    VerificationState.RUNNING: verification_pb2.VERIFICATION_STATE_RUNNING,
    VerificationState.PASSED: verification_pb2.VERIFICATION_STATE_PASSED,
    VerificationState.FAILED: verification_pb2.VERIFICATION_STATE_FAILED,
}


def asked_from_proto(message: catalog_service_pb2.VerifySupplyRequest) -> tuple[str, str, float]:
    """(Supply, verification, seconds to wait). Fault `validation_failed` naming what is missing."""
    missing = [name for name in ("supply_id", "request_id") if not getattr(message, name)]
    if missing:
        raise Fault.invalid(*((f"/{name}", "is required") for name in missing))
    wait_s = seconds_of(message.wait)
    if wait_s < 0:
        raise Fault.invalid(("/wait", "must not be negative"))
    return message.supply_id, message.request_id, wait_s


def verification_to_proto(verification: Verification) -> verification_pb2.Verification:
    """One verification."""
    return verification_pb2.Verification(
        id=verification.id,
        supply_id=verification.supply,
        upstream_model=verification.upstream_model,
        capability_version=verification.capability_version,
        state=STATES[verification.state],
        cases=map(_case, verification.trials),
        cost=money_to_proto(verification.cost()),
        start_time=time_to_proto(verification.started_at),
        finish_time=time_to_proto(verification.finished_at),
    )


def _case(trial: Trial) -> verification_pb2.VerificationCase:
    return verification_pb2.VerificationCase(
        name=trial.name,
        task_id=trial.task_id,
        call_id=trial.call_id,
        state=STATES[trial.state],
        reasons=trial.reasons,
        cost=money_to_proto(trial.cost),
    )
