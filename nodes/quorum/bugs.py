"""Planted bugs: known ways to get consensus wrong, each one a branch in the code, all off.

They exist so that every checker and invariant can be shown to turn red. One frozen record for the
whole of ``nodes``, given at construction; nothing may switch a bug on later, and nothing but the
branch that it names may read it. Where each comes from, and what exposes it, is said beside the
system's adapter: the nodes know the names alone.
"""

from collections.abc import Iterable
from typing import Final

import msgspec


class PlantedBugs(msgspec.Struct, frozen=True):
    """Which bugs are on. The default is the correct system."""

    #: A voter answers a vote without making it durable; a restart forgets it.
    vote_not_persisted: bool = False
    #: Appended records count as flushed at once, on leaders and followers; ``nodes.server`` asks
    #: the disk once a second, since nobody waits for it.
    ack_before_fsync: bool = False
    #: A leader commits records of earlier epochs by counting copies alone.
    prior_epoch_commit: bool = False
    #: A diverging follower drops its whole last common epoch, and the guard at the high watermark
    #: is off.
    truncate_below_high_watermark: bool = False
    #: A leader answers reads from its own state without asking anyone whether it still leads, and
    #: never resigns for want of a majority (else an isolated one would stop answering so soon that
    #: a container run hardly sees it).
    stale_leader_reads: bool = False
    #: The server acknowledges a write once it is appended; read by ``nodes.server`` alone.
    ack_before_commit: bool = False

    #: Votes and requests for votes leave before the quorum state that they depend on is durable;
    #: it is written, but later.
    vote_answered_before_durable: bool = False
    #: A move to a higher epoch without a vote stays in memory.
    epoch_not_persisted: bool = False
    #: A voter votes again in an epoch for a candidate whose log is longer than its own, and the
    #: guard against a second vote is off.
    double_vote_same_epoch: bool = False
    #: Votes and pre-votes are granted whatever the candidate's log.
    vote_ignores_log: bool = False
    #: Pre-votes are granted whatever the candidate's log; votes are not.
    pre_vote_ignores_log: bool = False
    #: A candidate does not give up its outstanding pre-vote requests: their answers count as votes.
    stale_vote_counted: bool = False
    #: A leader that hears of a higher epoch goes on as the leader of that epoch.
    leader_survives_epoch_bump: bool = False
    #: A restarted leader goes on leading the epoch that it led.
    leader_resumes_after_restart: bool = False
    #: A leader without fetches from a majority never resigns; its reads are confirmed all the same.
    isolated_leader_stays: bool = False

    #: A leader counts its own records as soon as they are appended.
    unflushed_counts: bool = False
    #: A leader knows and tells the high watermark once it has reached the start of its epoch; a
    #: record of that epoch is not awaited.
    high_watermark_before_own_epoch: bool = False
    #: A leader takes a fetch offset within its log for agreement, whatever the last fetched epoch.
    no_divergence_check: bool = False
    #: A follower takes the high watermark of a diverging answer before it truncates, and then takes
    #: it back: the guard at the high watermark is off.
    follower_high_watermark_ahead: bool = False

    #: Any answer of the peer settles the outstanding request, also one to an earlier life or role.
    stale_answer_accepted: bool = False
    #: An answer is matched by its correlation alone, which starts at zero in every life and role.
    correlation_restarts: bool = False
    #: A fetch confirms every read asked so far, also one asked after the fetch was sent.
    read_confirmed_by_old_fetch: bool = False
    #: A leader serves reads from the high watermark that it knew before it led.
    read_before_own_commit: bool = False

    #: The quorum state is overwritten in place.
    quorum_state_not_atomic: bool = False
    #: The folder is not synced after the quorum state or the epoch checkpoint was renamed.
    rename_not_synced: bool = False
    #: The folder is not synced after a segment was made.
    segment_name_not_synced: bool = False
    #: A failed sync of a segment is tried again, and its success counts.
    failed_fsync_retried: bool = False
    #: The durable-length mark is written before the bytes that it tells of are synced.
    mark_leads_flush: bool = False
    #: The durable-length mark is never lowered.
    mark_not_rolled_back: bool = False
    #: An invalid batch below the durable-length mark is cut off as a torn tail.
    corruption_as_torn_tail: bool = False
    #: The checksum of a batch in the own log is not compared.
    checksum_not_verified: bool = False
    #: The epoch of a batch is not compared with the epoch checkpoint, nor with the batch before.
    epoch_rot_unnoticed: bool = False

    #: A snapshot is named after the last offset in it, not after the one behind that.
    snapshot_id_off_by_one: bool = False
    #: The beginning of the log, and older snapshots, go when a snapshot is begun.
    log_cut_before_snapshot: bool = False
    #: What is committed first after a snapshot was loaded counts as a part of it.
    delta_lost_at_snapshot_load: bool = False
    #: Where older snapshots are removed, the one that the log begins with goes with them.
    newest_snapshot_removed: bool = False
    #: Of the batches that are applied at once the last one comes before the one before it.
    applied_out_of_order: bool = False

    #: A prospective follows the leader that a granted pre-vote names, dead or not.
    follows_granted_pre_vote: bool = False
    #: A leader that was known before is no news to an observer that has lost it.
    observer_loses_its_leader: bool = False
    #: A resigned leader waits for another one, and never stands itself.
    resigned_never_stands: bool = False
    #: A candidate asks each voter once, and waits for every vote that is still out.
    candidate_never_gives_up: bool = False

    @property
    def keeps_connections(self) -> bool:
        """Whether links do their half: a request that is given up leaves its connection open.

        Behind a link that closes it no answer to an earlier request ever comes.
        """
        return self.stale_answer_accepted or self.correlation_restarts

    @classmethod
    def from_names(cls, names: Iterable[str]) -> "PlantedBugs":
        """Switches on the bugs named in kebab case, as on the command line.

        Raises:
            ValueError: a name is unknown; the message lists the known ones.
        """
        known = {field.replace("_", "-"): field for field in cls.__struct_fields__}
        chosen: dict[str, bool] = {}
        for name in names:
            if name not in known:
                raise ValueError(f"unknown bug {name!r}; known are {', '.join(sorted(known))}")
            chosen[known[name]] = True
        return cls(**chosen)

    def names(self) -> tuple[str, ...]:
        """Kebab-case names of the bugs that are on, in the order of declaration."""
        return tuple(
            field.replace("_", "-") for field in self.__struct_fields__ if getattr(self, field)
        )


NO_BUGS: Final = PlantedBugs()
