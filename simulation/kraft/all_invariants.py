"""All invariants of a simulated quorum, in the order in which they look.

Must never leave one out: which are muted is the run's to say.
"""

from typing import Final

from splitbrain.simulation.kraft.invariants import Invariant
from splitbrain.simulation.kraft.invariants_brokers import (
    CleanStopsAreToldOnce,
    FencedShowNothing,
    ProducerIdsAreToldOnce,
    ProposalsAreOfThePresent,
    StrangersAreRefused,
    ToldIsCommitted,
)
from splitbrain.simulation.kraft.invariants_clients import (
    AcknowledgedStays,
    AnswersFollowTheLog,
    EqualStates,
    LinearizableReads,
    RefusedNeverHappens,
)
from splitbrain.simulation.kraft.invariants_elections import (
    DurableBeforeSaid,
    ElectionSafety,
    LeaderCompleteness,
    MajorityElects,
    OneVote,
    VotesForCompleteLogs,
)
from splitbrain.simulation.kraft.invariants_logs import (
    CommitsOwnEpoch,
    CommittedIsDurable,
    CommittedNeverChanges,
    CommittedStays,
    HighWatermarkRises,
    LogMatching,
    NobodyHalts,
    OnlyCommittedIsTold,
)
from splitbrain.simulation.kraft.invariants_metadata import (
    BrokerEpochsAreNew,
    FencedHoldNothing,
    OneAnswerPerRequest,
    RecordsMakeMetadata,
    TransactionsEndWithTheirLeader,
    UnfencedOnceCaughtUp,
    ViewsNeverGoBack,
)
from splitbrain.simulation.kraft.invariants_sessions import LeaversAreMissed, LiveBrokersStay
from splitbrain.simulation.kraft.invariants_storage import (
    EqualBytes,
    PromisedIsKept,
    SnapshotsTellTheLog,
)

#: Checked in this order; the first violation ends the run.
INVARIANTS: Final[tuple[type[Invariant], ...]] = (
    ElectionSafety,
    LeaderCompleteness,
    MajorityElects,
    VotesForCompleteLogs,
    LogMatching,
    OneVote,
    DurableBeforeSaid,
    HighWatermarkRises,
    CommittedIsDurable,
    CommittedStays,
    CommitsOwnEpoch,
    LinearizableReads,
    CommittedNeverChanges,
    AcknowledgedStays,
    NobodyHalts,
    PromisedIsKept,
    OnlyCommittedIsTold,
    AnswersFollowTheLog,
    EqualStates,
    EqualBytes,
    RefusedNeverHappens,
    SnapshotsTellTheLog,
    RecordsMakeMetadata,
    TransactionsEndWithTheirLeader,
    BrokerEpochsAreNew,
    FencedHoldNothing,
    OneAnswerPerRequest,
    ViewsNeverGoBack,
    UnfencedOnceCaughtUp,
    StrangersAreRefused,
    ProposalsAreOfThePresent,
    ProducerIdsAreToldOnce,
    ToldIsCommitted,
    LeaversAreMissed,
    LiveBrokersStay,
    FencedShowNothing,
    CleanStopsAreToldOnce,
)
