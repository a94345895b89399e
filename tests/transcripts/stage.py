"""A stage for transcripts: a few replicas, and nothing moves unless a command says so.

Messages wait in queues, disks wait to be told that they are done, the clock stands still. Random
waits are always the middle of their range, so that a scenario can be read with the settings at
hand. Every command is one method named like it, with the words after it as arguments; the module is
longer than 400 lines because they all work on one cast.
"""

import ast
from collections import deque
from typing import Any

import msgspec

from splitbrain.nodes.quorum import effects, events
from splitbrain.nodes.quorum.errors import InvariantViolation
from splitbrain.nodes.quorum.identifiers import (
    ConnectionId,
    CorrelationId,
    Epoch,
    Incarnation,
    Microseconds,
    NodeId,
    Offset,
)
from splitbrain.nodes.quorum.messages import Answer, BatchHeader, FetchAnswer
from splitbrain.nodes.quorum.persistent import EpochStart, LogShape, QuorumState, Voter
from splitbrain.nodes.quorum.replica import Replica
from splitbrain.nodes.quorum.trace import describe
from tests.transcripts import message_defaults
from tests.unit.nodes.quorum.replicas import SETTINGS, directory, key

#: (epoch, payload); a LeaderChange has an empty payload.
Entry = tuple[Epoch, bytes]


class Middle:
    """The random source of the stage."""

    def random(self) -> float:
        return 0.5


class Message(msgspec.Struct):
    """A request or an answer on its way."""

    source: NodeId
    target: NodeId
    connection: ConnectionId
    correlation: CorrelationId
    #: Life of the node that asked.
    incarnation: Incarnation
    content: Any
    is_request: bool


class Player:
    """One node on the stage: a replica and a disk that waits to be told."""

    def __init__(self, node_id: NodeId) -> None:
        self.key = key(node_id)
        self.incarnation = Incarnation(0)
        self.replica: Replica | None = None
        self.state = QuorumState(Epoch(0), None, None, None)
        self.states: list[effects.PersistQuorumState] = []
        self.log: list[Entry] = []
        self.durable_log: list[Entry] = []
        self.last_submission = 0
        #: Outstanding request per peer: (connection, correlation).
        self.outbound: dict[NodeId, tuple[ConnectionId, CorrelationId]] = {}
        self.connections: dict[NodeId, ConnectionId] = {}

    def shape(self) -> LogShape:
        starts: list[EpochStart] = []
        for offset, (epoch, _) in enumerate(self.log):
            if not starts or epoch > starts[-1].epoch:
                starts.append(EpochStart(epoch, Offset(offset)))
        return LogShape(Offset(0), Offset(len(self.log)), tuple(starts))


class Stage:
    """Performs commands; ``lines`` is the trace of the last one."""

    def __init__(self) -> None:
        self.now = 0
        self.lines: list[str] = []
        #: Whether something that must never happen was seen.
        self.went_wrong = False
        self._quiet = False
        self._voters: tuple[Voter, ...] = ()
        self._players: dict[NodeId, Player] = {}
        self._messages: deque[Message] = deque()
        self._cut: list[NodeId] = []
        #: Pairs that do not hear each other.
        self.closed: set[frozenset[int]] = set()
        self._committed: list[Entry] = []
        #: Read -> how much was committed when it was asked.
        self._reads: dict[events.ReadId, int] = {}
        self._leaders: dict[Epoch, tuple[NodeId, int]] = {}
        self._count = 0
        self._batches_max = 100

    def perform(self, command: str) -> list[str]:
        """Runs one command line and returns its trace."""
        self.lines = []
        name, *arguments = command.split()
        self._quiet = name == "quietly"
        if self._quiet:
            name, *arguments = arguments
        try:
            getattr(self, f"do_{name}")(*arguments)
        except InvariantViolation as violation:
            self.went_wrong = True
            self.lines.append(f"VIOLATION {violation.invariant}: {violation.problem}")
        return self.lines

    # --- the cast -------------------------------------------------------------------------

    def do_voters(self, count: str, observers: str = "0") -> None:
        """voters 3 [observers]: names the cast; nobody runs yet."""
        ids = [NodeId(number) for number in range(1, int(count) + 1)]
        self._voters = tuple(Voter(node, directory(node), f"n{node}", 9093) for node in ids)
        for number in range(1, int(count) + int(observers) + 1):
            self._players[NodeId(number)] = Player(NodeId(number))

    def do_state(self, node: str, epoch: str, leader: str, voted: str) -> None:
        """state N EPOCH LEADER VOTED ('-' for none): what its quorum-state file says."""
        voted_id = None if voted == "-" else NodeId(int(voted))
        self._player(node).state = QuorumState(
            Epoch(int(epoch)),
            None if leader == "-" else NodeId(int(leader)),
            voted_id,
            None if voted_id is None else directory(voted_id),
        )

    def do_log(self, node: str, *epochs: str) -> None:
        """log N 1x3 2x1: three records of epoch 1, one of epoch 2, all durable."""
        player = self._player(node)
        for word in epochs:
            epoch, count = word.split("x")
            for _ in range(int(count)):
                payload = f"e{epoch}@{len(player.log)}".encode()
                player.log.append((Epoch(int(epoch)), payload))
        player.durable_log = list(player.log)

    def do_batches(self, count: str) -> None:
        """batches 1: so many batches at most in one fetch answer."""
        self._batches_max = int(count)

    def do_start(self, *nodes: str) -> None:
        for node in nodes:
            player = self._player(node)
            player.incarnation = Incarnation(player.incarnation + 1)
            player.last_submission = 0
            player.outbound.clear()
            player.connections.clear()
            player.replica = Replica(
                settings=SETTINGS,
                voters=self._voters,
                me=player.key,
                cluster_id="stage",
                incarnation=player.incarnation,
                state=player.state,
                log=player.shape(),
                random=Middle(),
                now=Microseconds(self.now),
            )
            self._step(player, events.Started())

    def do_crash(self, node: str) -> None:
        """crash N: unsynced work is lost, its connections are gone."""
        player = self._player(node)
        player.replica = None
        player.states.clear()
        player.log = list(player.durable_log)

    # --- time, disks, links ---------------------------------------------------------------

    def do_wait(self, wait_ms: str) -> None:
        self.now += int(wait_ms) * 1000

    def do_timer(self, node: str) -> None:
        """timer N: the clock moves to its deadline (or stands), its timer rings."""
        player = self._player(node)
        deadline = self._replica(player).deadline
        self._say(f"n{node} deadline {'never' if deadline is None else f'{deadline / 1000:g} ms'}")
        self.now = max(self.now, deadline or 0)
        self._step(player, events.TimerElapsed())

    def do_persist(self, *nodes: str) -> None:
        for node in nodes:
            player = self._player(node)
            if player.states:
                newest = player.states[-1]
                player.states.clear()
                player.state = newest.state
                self._step(player, events.QuorumStatePersisted(newest.version))

    def do_flush(self, *nodes: str) -> None:
        for node in nodes:
            player = self._player(node)
            if player.last_submission:
                submission, player.last_submission = player.last_submission, 0
                player.durable_log = list(player.log)
                self._step(player, events.LogFlushed(submission))

    def do_cut(self, *nodes: str) -> None:
        """cut N: what goes to or from it waits."""
        self._cut.extend(NodeId(int(node)) for node in nodes)

    def do_heal(self) -> None:
        self._cut.clear()

    def do_deliver(self, link: str) -> None:
        """deliver 1>2: everything that waits on this link."""
        source, target = (NodeId(int(node)) for node in link.split(">"))
        for message in [m for m in self._messages if (m.source, m.target) == (source, target)]:
            self._messages.remove(message)
            self._arrive(message)

    def do_lose(self, link: str) -> None:
        """lose 1>2: everything that waits on this link is gone, and nobody is told."""
        source, target = (NodeId(int(node)) for node in link.split(">"))
        kept = [m for m in self._messages if (m.source, m.target) != (source, target)]
        self._messages = deque(kept)

    def do_refuse(self, link: str) -> None:
        """refuse 1>2: as fail, since nobody listens at 2's address."""
        self.do_fail(link, "refused")

    def do_fail(self, link: str, reason: str = "timeout") -> None:
        """fail 1>2: the outstanding request of 1 to 2 fails, its connection closes."""
        refused = reason == "refused"
        source, target = (NodeId(int(node)) for node in link.split(">"))
        player = self._players[source]
        if target not in player.outbound:
            self._say(f"n{source} waits for nothing from n{target}")
            return
        connection, correlation = player.outbound.pop(target)
        player.connections.pop(target, None)
        other = self._players[target]
        if other.replica is not None:
            self._step(other, events.ConnectionClosed(connection))
        failed = events.RequestFailed(
            target, correlation, player.incarnation, reason, refused=refused
        )
        self._step(player, failed)

    def do_settle(self) -> None:
        """settle: disks finish and messages arrive until nothing moves; the clock stands."""
        for _ in range(1000):
            before = len(self._messages)
            busy = [
                p for p in self._players.values() if p.replica and (p.states or p.last_submission)
            ]
            for player in busy:
                self.do_persist(str(player.key.node_id))
                self.do_flush(str(player.key.node_id))
            message = next((m for m in self._messages if self._passes(m)), None)
            if message is not None:
                self._messages.remove(message)
                self._arrive(message)
            elif not busy and before == len(self._messages):
                return
        raise AssertionError("this never settles")

    # --- the layer above ------------------------------------------------------------------

    def do_propose(self, node: str, *payloads: str) -> None:
        self._count += 1
        records = tuple(payload.encode() for payload in payloads)
        self._step(
            self._player(node), events.RecordsProposed(events.ProposalId(self._count), records)
        )

    def do_read(self, node: str) -> None:
        self._count += 1
        self._reads[events.ReadId(self._count)] = len(self._committed)
        self._step(self._player(node), events.ReadRequested(events.ReadId(self._count)))

    def do_resign(self, node: str) -> None:
        self._step(self._player(node), events.ResignRequested())

    def do_show(self, *nodes: str) -> None:
        """show N: role, epoch, leader, high watermark, flushed end and the log as epochs."""
        for node in nodes:
            player = self._player(node)
            replica = self._replica(player)
            log = " ".join(str(epoch) for epoch, _ in player.log)
            self.lines.append(
                f"n{node}: {replica.role} in epoch {replica.epoch}, leader {replica.leader_id},"
                f" high watermark {replica.high_watermark}, flushed {replica.flushed_end_offset},"
                f" log [{log}]"
            )

    # --- strangers ------------------------------------------------------------------------

    def do_ask(self, node: str, kind: str, *fields: str) -> None:
        """ask N VoteRequest epoch=3 ...: a request out of nowhere, on connection 900."""
        request = message_defaults.request(kind, NodeId(int(node)), _fields(fields))
        event = events.RequestReceived(ConnectionId(900), CorrelationId(0), request)
        self._step(self._player(node), event)

    def do_reply(self, node: str, peer: str, correlation: str, kind: str, *fields: str) -> None:
        """reply N PEER CORRELATION VoteAnswer ...: an answer out of nowhere; incarnation=K for
        that of another life of N."""
        values = _fields(fields)
        player = self._player(node)
        incarnation = Incarnation(values.pop("incarnation", player.incarnation))
        answer = message_defaults.answer(kind, values)
        number = CorrelationId(int(correlation))
        self._step(player, events.AnswerReceived(NodeId(int(peer)), number, incarnation, answer))

    # --- the machinery --------------------------------------------------------------------

    def _player(self, node: str) -> Player:
        return self._players[NodeId(int(node))]

    def _replica(self, player: Player) -> Replica:
        assert player.replica is not None, f"n{player.key.node_id} is down"
        return player.replica

    def _say(self, line: str) -> None:
        if not self._quiet:
            self.lines.append(line)

    def _step(self, player: Player, event: events.Event) -> None:
        replica = self._replica(player)
        self._say(f"n{player.key.node_id} < {describe(event)}")
        steps = replica.step(Microseconds(self.now), event)
        for effect in steps:
            self._say(f"     {describe(effect)}")
            self._perform(player, effect)
        replica.validate()

    def _perform(self, player: Player, effect: effects.Effect) -> None:
        match effect:
            case effects.PersistQuorumState():
                player.states.append(effect)
            case effects.AppendLeaderChange():
                self._write(player, effect.submission, effect.base_offset, [(effect.epoch, b"")])
            case effects.AppendRecords():
                entries = [(effect.epoch, payload) for payload in effect.payloads]
                self._write(player, effect.submission, effect.base_offset, entries)
            case effects.AppendBatches():
                entries = msgspec.msgpack.decode(effect.records, type=list[Entry])
                self._write(player, effect.submission, effect.base_offset, entries)
            case effects.TruncateLog():
                self._write(player, effect.submission, effect.end_offset, [])
            case effects.SendRequest():
                self._send_request(player, effect)
            case effects.AbandonRequest():
                player.outbound.pop(effect.peer, None)
                player.connections.pop(effect.peer, None)
            case effects.SendAnswer():
                self._send_answer(player, effect.connection, effect.correlation, effect.answer)
            case effects.AnswerFetch():
                answer = self._fill(player, effect)
                self._send_answer(player, effect.connection, effect.correlation, answer)
            case effects.AdvanceHighWatermark():
                self._check_commit(player, effect.offset)
            case effects.AnswerRead():
                if effect.offset < self._reads[effect.read_id]:
                    self._wrong(
                        f"read {effect.read_id} misses what was committed before it was asked: it"
                        f" sees {effect.offset} records of {self._reads[effect.read_id]}"
                    )
            case effects.ReportState(kind="role", role="leader"):
                who = (player.key.node_id, int(player.incarnation))
                if self._leaders.setdefault(effect.epoch, who) != who:
                    self._wrong(f"n{who[0]} leads epoch {effect.epoch}, and another does, too")
            case _:
                pass

    def _write(self, player: Player, submission: int, offset: Offset, entries: list[Entry]) -> None:
        if offset < len(player.log) and any(
            entry == known
            for entry, known in zip(player.log[offset:], self._committed[offset:], strict=False)
        ):
            self._wrong(f"n{player.key.node_id} drops committed records from {offset} on")
        del player.log[offset:]
        player.log.extend(entries)
        player.last_submission = submission

    def _check_commit(self, player: Player, offset: Offset) -> None:
        for index in range(offset):
            if index == len(self._committed):
                self._committed.append(player.log[index])
            elif self._committed[index] != player.log[index]:
                self._wrong(
                    f"n{player.key.node_id} takes {player.log[index]} at {index} for committed,"
                    f" where {self._committed[index]} was"
                )

    def _wrong(self, problem: str) -> None:
        self.went_wrong = True
        self.lines.append(f"WRONG {problem}")

    def _send_request(self, player: Player, effect: effects.SendRequest) -> None:
        if effect.peer not in player.connections:
            self._count += 1
            player.connections[effect.peer] = ConnectionId(self._count)
        connection = player.connections[effect.peer]
        player.outbound[effect.peer] = (connection, effect.correlation)
        me, life, number = player.key.node_id, player.incarnation, effect.correlation
        message = Message(me, effect.peer, connection, number, life, effect.request, True)
        self._messages.append(message)

    def _send_answer(
        self, player: Player, connection: ConnectionId, correlation: CorrelationId, answer: Answer
    ) -> None:
        me = player.key.node_id
        for peer, other in self._players.items():
            if other.outbound.get(me) == (connection, correlation):
                life = other.incarnation
                message = Message(me, peer, connection, correlation, life, answer, False)
                self._messages.append(message)

    def _passes(self, message: Message) -> bool:
        return (
            message.source not in self._cut
            and message.target not in self._cut
            and frozenset((message.source, message.target)) not in self.closed
            and self._players[message.target].replica is not None
        )

    def _arrive(self, message: Message) -> None:
        player = self._players[message.target]
        if message.is_request:
            event = events.RequestReceived(message.connection, message.correlation, message.content)
        else:
            player.outbound.pop(message.source, None)
            source, life = message.source, message.incarnation
            event = events.AnswerReceived(source, message.correlation, life, message.content)
        self._step(player, event)

    def _fill(self, player: Player, effect: effects.AnswerFetch) -> FetchAnswer:
        entries = player.log[effect.read_offset : effect.end_offset][: self._batches_max]
        headers = tuple(
            BatchHeader(Offset(offset), Offset(offset), epoch, 100)
            for offset, (epoch, _) in enumerate(entries, effect.read_offset)
        )
        records = msgspec.msgpack.encode(entries)
        return msgspec.structs.replace(effect.answer, batches=headers, records=records)


def _fields(arguments: tuple[str, ...]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for word in arguments:
        name, _, value = word.partition("=")
        fields[name] = ast.literal_eval(value)
    return fields
