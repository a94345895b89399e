"""All invariants of a simulated quorum, in the order in which they look.

Must never leave one out: which are muted is the run's to say.
"""

from typing import Final

from splitbrain.simulation.kraft import invariants_brokers as brokers
from splitbrain.simulation.kraft import invariants_clients as clients
from splitbrain.simulation.kraft import invariants_elections as elections
from splitbrain.simulation.kraft import invariants_leavers as leavers
from splitbrain.simulation.kraft import invariants_logs as logs
from splitbrain.simulation.kraft import invariants_metadata as metadata
from splitbrain.simulation.kraft import invariants_partitions as partitions
from splitbrain.simulation.kraft import invariants_sessions as sessions
from splitbrain.simulation.kraft import invariants_storage as storage
from splitbrain.simulation.kraft.invariants import Invariant

#: Checked in this order; the first violation ends the run.
INVARIANTS: Final[tuple[type[Invariant], ...]] = (
    elections.ElectionSafety,
    elections.LeaderCompleteness,
    elections.MajorityElects,
    elections.VotesForCompleteLogs,
    logs.LogMatching,
    elections.OneVote,
    elections.DurableBeforeSaid,
    logs.HighWatermarkRises,
    logs.CommittedIsDurable,
    logs.CommittedStays,
    logs.CommitsOwnEpoch,
    clients.LinearizableReads,
    logs.CommittedNeverChanges,
    clients.AcknowledgedStays,
    logs.NobodyHalts,
    storage.PromisedIsKept,
    logs.OnlyCommittedIsTold,
    clients.AnswersFollowTheLog,
    clients.EqualStates,
    storage.EqualBytes,
    clients.RefusedNeverHappens,
    storage.SnapshotsTellTheLog,
    metadata.RecordsMakeMetadata,
    metadata.TransactionsEndWithTheirLeader,
    metadata.BrokerEpochsAreNew,
    metadata.FencedHoldNothing,
    metadata.OneAnswerPerRequest,
    metadata.ViewsNeverGoBack,
    metadata.UnfencedOnceCaughtUp,
    brokers.StrangersAreRefused,
    brokers.ProposalsAreOfThePresent,
    brokers.ProducerIdsAreToldOnce,
    brokers.ToldIsCommitted,
    leavers.LeaversAreMissed,
    sessions.LiveBrokersStay,
    brokers.FencedShowNothing,
    brokers.CleanStopsAreToldOnce,
    partitions.PartitionsAreWhole,
    partitions.LeadersWereInSync,
    partitions.IsrsFollowTheirLeader,
    partitions.PartitionsAreLed,
    sessions.SilentBrokersAreFenced,
    sessions.CaughtUpBrokersServe,
    sessions.FencedForAReason,
    leavers.LeaversMayGo,
    brokers.GoodProposalsAreTaken,
)
