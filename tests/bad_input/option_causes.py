"""Wrong commands, options and combinations of them."""

from splitbrain.contracts.scenario import SEED_MAX
from splitbrain.harness.cli.main import app
from splitbrain.history.blobs import Blob, pack
from splitbrain.history.durations import EXAMPLES
from splitbrain.history.seeds import WRITE_SEEDS
from splitbrain.nodes.server.start import quorum_settings
from splitbrain.runtimes.registry import runtime_names
from splitbrain.systems import registry
from tests.bad_input.cause import Arrange, Chapter, Scene, causes

COMMAND_NAMES = ", ".join(sorted(name for name in app if not name.startswith("-")))
KNOWN_SETTINGS = ", ".join(sorted(quorum_settings._OURS | set(quorum_settings._KAFKA)))
SCENARIO_BLOB = pack(Blob("scenario.json", "{}", "splitbrain 0.1.0"))
RUNTIMES = ", ".join(runtime_names())
OWN_SYSTEM = """
from splitbrain.contracts.log_pattern import LogPattern
from splitbrain.systems.servers import ServerSystem

class Mine(ServerSystem):
    name = "mine"
    log_patterns = {patterns}

    def command(self, server, others):
        return ("true",)
"""

LENIENT = """
from splitbrain.contracts.system import AllowedAnomaly
from splitbrain.systems.servers import ServerSystem

class Lenient(ServerSystem):
    name, node_counts = "lenient", (1,)
    checker, kind = "queue-totals", "duplicate"
    def command(self, server, others): raise NotImplementedError
    def allowed(self): return [AllowedAnomaly(self.checker, self.kind, "as documented")]

class Strange(Lenient):
    name, checker = "strange", "queue-total"
"""


def with_file(name: str, text: str) -> Arrange:
    """A system of one's own in a file that the command names."""

    def arrange(scene: Scene) -> None:
        scene.write(name, text)
        # Systems of files are known by a variable from then on.
        scene.monkeypatch.setenv(registry.VARIABLE, "")
        scene.undo.callback(registry._by_name.cache_clear)

    return arrange


def system_that(line: str) -> Arrange:
    """A system of one's own with this line in the body of its class."""
    body = "    name = 'other'\n    def command(self, server, others): return ('true',)\n"
    head = "from splitbrain.systems.servers import ServerSystem\n\nclass Other(ServerSystem):\n"
    return with_file("mine.py", f"{head}{body}    {line}\n")


def system_with(patterns: str) -> Arrange:
    """A system of one's own with these patterns of its logs."""
    return with_file("mine.py", OWN_SYSTEM.format(patterns=patterns))


COMMANDS = Chapter(
    "The command",
    causes(
        f"""
unknown-command | no such command | tset | process
  there is no command 'tset'. Did you mean 'test'?
empty-command | an empty command | ''
  there is no command ''. The commands are: {COMMAND_NAMES}
help-of-no-command | help of a command that there is not | help tset
  there is no command 'tset'. Did you mean 'test'?
option-without-command | an option without a command | --verbose
  the option --verbose stands where a command is expected. `splitbrain --help` shows what there is
unknown-option | a misspelt option | test --sed 3 | process
  `splitbrain test` has no option --sed. Did you mean --seed?
outlandish-option | an option like no other | clean --zzz
  `splitbrain clean` has no option --zzz. `splitbrain clean --help` shows what there is
missing-value | an option without its value | test --seed
  --seed has no value. `splitbrain test --help` shows what there is
extra-word | one word too many | clean now
  'now' is one word too many. `splitbrain clean --help` shows what there is
missing-path | nothing to be judged | check
  missing argument PATH. `splitbrain check --help` shows what there is
missing-run | nothing to be replayed | replay
  missing argument RUN. Name a run folder, such as runs/latest, or a --scenario FILE
maker-of-no-version | a line whose version was lost on its way | sim --seed 1 --made-by
  --made-by cannot be ''. Write a version, or VERSION+COMMIT, such as 0.2.0+4795ac6
repeated-option | an option given twice | test --seed 1 --seed 2
  --seed is given twice. Give it once
value-for-switch | a switch with a value | test --keep-data=maybe
  --keep-data cannot be 'maybe'. `splitbrain test --help` shows what there is
no-suite-file | a suite without its file | suite
  no suite file is named. Name one, such as bench/suites/nightly.toml
missing-nightly-file | a nightly file that is not there | nightly missing.toml
  the nightly file missing.toml cannot be read: No such file or directory. Name a file that exists
misspelt-thing | a misspelt name to be explained | explain lost-comits | process
  nothing that can be explained is called 'lost-comits'. Did you mean 'lost-commits'?
misspelt-anomaly | the same in several words | explain stail read
  nothing that can be explained is called 'stail read'. Did you mean 'stale read'?
outlandish-thing | a name like no other | explain xyzzy
  nothing that can be explained is called 'xyzzy'. `splitbrain explain` lists what there is
no-such-invariant | an invariant that there is not | explain INV-99
  nothing that can be explained is called 'INV-99'. `splitbrain explain invariants` lists them
unknown-shell | a shell without completion | completion tcsh
  SHELL cannot be 'tcsh'. `splitbrain completion --help` shows what there is
explained-option | an option of a command that has none | explain --all
  `splitbrain explain` has no option --all. `splitbrain explain --help` shows what there is
"""
    ),
)

NUMBERS = Chapter(
    "Numbers",
    causes(
        f"""
nodes-word | a word for a number | test --nodes three
  --nodes cannot be 'three'. Choose a whole number
nodes-fraction | half a node | test --nodes 2.5
  --nodes cannot be '2.5'. Choose a whole number
nodes-zero | no node | test --nodes 0
  --nodes cannot be 0. Choose a number between 1 and 9
nodes-ten | more nodes than names | test --nodes 10
  --nodes cannot be 10. Choose a number between 1 and 9
time-limit-unit | a time with a unit that there is not | test --time-limit 2weeks
  --time-limit cannot be '2weeks'. Write a time such as {EXAMPLES}
time-limit-order | a time whose units go up | test --time-limit 30s1h
  --time-limit cannot be '30s1h'. Write a time such as {EXAMPLES}
timeout-word | a patience in words | test --operation-timeout long
  --operation-timeout cannot be 'long'. Write a time such as {EXAMPLES}
search-time | a time of a search that is none | shrink runs/latest --time-limit soon
  --time-limit cannot be 'soon'. Write a time such as {EXAMPLES}
time-limit-zero | no time at all | test --time-limit 0
  --time-limit cannot be 0. Choose a number of seconds above 0 and at most 604,800
time-limit-negative | a time before it began | test --time-limit -5
  --time-limit cannot be -5. Choose a number of seconds above 0 and at most 604,800
time-limit-nan | a time that is no number | test --time-limit nan
  --time-limit cannot be nan. Choose a number of seconds above 0 and at most 604,800
time-limit-infinite | a time without end | test --time-limit inf
  --time-limit cannot be inf. Choose a number of seconds above 0 and at most 604,800
time-limit-huge | thirty years | test --time-limit 1e9
  --time-limit cannot be 1e+09. Choose a number of seconds above 0 and at most 604,800
seed-word | a seed that is no number | test --seed lucky
  --seed cannot be 'lucky'. {WRITE_SEEDS}
seed-negative | a seed below 0 | test --seed -1
  --seed -1 names a seed outside of 0 to {SEED_MAX:,}. {WRITE_SEEDS}
seed-huge | a seed beyond 64 bits | test --seed 99999999999999999999
  --seed 99999999999999999999 names a seed outside of 0 to {SEED_MAX:,}. {WRITE_SEEDS}
seeds-of-a-test | no seed for a test | test --seeds 5:5
  --seeds 5:5 is empty: 5 does not come after 5. {WRITE_SEEDS}
seeds-of-a-try | seeds in words for a try | try compose.yaml --seeds some
  --seeds cannot be 'some'. {WRITE_SEEDS}
plan-cut | a plan file that was cut on its way | test --nemesis blob:eNolzUE
  'blob:eNolzUE' is not whole: it was cut or changed on its way. Copy the line again, all that
  begins with blob: up to the next blank
plan-of-a-world | a world where a plan file belongs | test --nemesis {SCENARIO_BLOB}
  --nemesis is given the file scenario.json, which is no plan file. Give it to the command and the
  option that its line names
dry-run-unknown-runtime | a dry run on a runtime that there is not | test --dry-run --runtime doker
  there is no runtime 'doker'. Did you mean 'docker'?
concurrency-zero | nobody to work | test --concurrency 0
  --concurrency cannot be 0. Choose a number between 1 and 10,000
concurrency-huge | too many to work | test --concurrency 1000000
  --concurrency cannot be 1000000. Choose a number between 1 and 10,000
rate-zero | no operation a second | test --rate 0
  --rate cannot be 0. Choose a number above 0 and at most 10,000,000
rate-negative | operations taken back | test --rate -5
  --rate cannot be -5. Choose a number above 0 and at most 10,000,000
rate-nan | a rate that is no number | test --rate nan
  --rate cannot be nan. Choose a number above 0 and at most 10,000,000
rate-infinite | a rate without end | test --rate inf
  --rate cannot be inf. Choose a number above 0 and at most 10,000,000
timeout-zero | no patience | test --operation-timeout 0
  --operation-timeout cannot be 0. Choose a number of seconds above 0 and at most 3,600
timeout-infinite | endless patience | test --operation-timeout inf
  --operation-timeout cannot be inf. Choose a number of seconds above 0 and at most 3,600
times-zero | no replay | replay runs/latest --times 0
  --times cannot be 0. Choose a number of at least 1
times-word | replays in words | replay runs/latest --times twice
  --times cannot be 'twice'. Choose a whole number
"""
    ),
)

NAMES = Chapter(
    "Names",
    causes(
        f"""
unknown-system | no such system | test --system krafft | process
  there is no system called 'krafft'. Did you mean 'kraft'?
own-system-bad-pattern | a system of one's own with a pattern of its logs that is none
  $ test --system mine.py:Mine
  {{folder}}/mine.py cannot be run: ValueError: 'panic(' is no regular expression of a log's
  lines: missing ), unterminated subpattern at position 5. Repair the file; it is Python
own-system-endless-pattern | one with a pattern that every line has
  $ test --system mine.py:Mine
  {{folder}}/mine.py cannot be run: ValueError: 'panic|' matches an empty line, and so is
  no sign of anything. Repair the file; it is Python
own-system-no-pattern | one with a text for a pattern
  $ test --system mine.py:Mine
  log_patterns of the system '{{folder}}/mine.py:Mine' is the list ['panic'], not a sequence of
  LogPattern. Repair the adapter
own-system-other-arguments | one with a method that takes other arguments
  $ test --system mine.py:Other
  Other.open_client (mine.py, line 6) does not take self, runtime, route. Write it as
  def open_client(self, runtime, route)
own-system-other-type | one with a method that returns something else
  $ test --system mine.py:Other --runtime local
  could not use the adapter (Other.tempo, mine.py, line 6): it returned the dict {{'ready_s': 5}},
  not Tempo. Repair the adapter
own-system-raises | one with a method that does not work
  $ test --system mine.py:Other --runtime local
  could not use the adapter (mine.py, line 6): it raised AttributeError: 'Other' object has no
  attribute 'nothing'. Repair the adapter
unknown-workload | no such workload | test --workload registr
  there is no workload called 'registr'. Did you mean 'register'?
unknown-state-machine | no such state machine | test --state-machine metdata
  the system 'kraft' has no state machine 'metdata'. Did you mean 'metadata'?
unknown-fault | no such fault | test --nemesis partion
  there is no fault or plan called 'partion'. Did you mean 'partition'?
unknown-fault-in-list | no such fault in a list | test --nemesis kill,paus
  there is no fault called 'paus'. Did you mean 'pause'?
unknown-plan | no such plan | test --nemesis isolate-leadr
  there is no fault or plan called 'isolate-leadr'. Did you mean 'isolate-leader'?
unknown-target | no such target | test --nemesis kill:leeder
  there is no target 'leeder' in a cluster of n1, n2, n3. Use leader, follower, last-leader,
  controller, laggard, random:K, halves, all or a node's name
unknown-node | a node that is not there | test --nemesis kill:n7
  there is no target 'n7' in a cluster of n1, n2, n3. Use leader, follower, last-leader,
  controller, laggard, random:K, halves, all or a node's name
unknown-bug | no such planted bug | test --bug stale-leader-read
  the system 'kraft' has no planted bug 'stale-leader-read'. Did you mean 'stale-leader-reads'?
unknown-runtime | no such runtime | test --runtime doker
  there is no runtime 'doker'. Choose one of: {RUNTIMES}
setting-without-value | a setting without = | test --setting fetch
  --setting 'fetch' is not a pair. Write --setting NAME=VALUE
setting-without-name | a setting without name | test --setting =5
  --setting '=5' is not a pair. Write --setting NAME=VALUE
setting-from-nothing | nothing to draw a setting from | test --setting fetch=drawn --dry-run
  the setting fetch of kraft cannot be 'drawn', which names no values.
  Write drawn:A,B for one of these values, or drawn:10..1000 for a whole number
unknown-setting | no such setting | test --setting foo=bar | process
  unknown setting 'foo'; known are {KNOWN_SETTINGS}. Correct the bug or the setting
setting-word | a setting of the wrong type | test --setting fetch_timeout_ms=soon
  setting 'fetch_timeout_ms' is 'soon', not a whole number. Correct the bug or the setting
setting-twice | a setting given twice
  $ test --setting fetch_timeout_ms=1 --setting fetch_timeout_ms=2
  --setting sets 'fetch_timeout_ms' twice. Give it once
workload-option-no-pair | a workload option without = | test --workload-option values
  --workload-option 'values' is not a pair. Write --workload-option NAME=VALUE
unknown-workload-option | no such workload option | test --workload-option value=small
  the workload 'register' has no option 'value'. Its options are: cas, values
unknown-workload-option-value | no such value of a workload option
  $ test --workload-option values=large
  the option 'values' of the workload 'register' cannot be 'large'. Choose one of: small, unique
workload-option-of-another | an option of another workload
  $ test --workload set --workload-option values=small
  the workload 'set' has no option 'values'. Its options are: none
""",
        {
            "own-system-bad-pattern": system_with("[LogPattern('panic(', 'It gave up.')]"),
            "own-system-endless-pattern": system_with("[LogPattern('panic|', 'It gave up.')]"),
            "own-system-no-pattern": system_with("['panic']"),
            "own-system-other-arguments": system_that("def open_client(self): ..."),
            "own-system-other-type": system_that("def tempo(self): return {'ready_s': 5}"),
            "own-system-raises": system_that("def tempo(self): return self.nothing"),
        },
    ),
)

COMBINATIONS = Chapter(
    "Combinations that cannot be",
    causes(
        """
no-state-machines | a state machine of a system that has no choice
  $ test --system redis --state-machine registers
  the system 'redis' has no choice of state machines. Leave --state-machine out
workload-of-another-state-machine | topics without metadata | test --workload topics
  the workload 'topics' does not fit the state machine 'registers'. Choose --state-machine metadata,
  or the workload register or set
registers-on-metadata | registers on metadata | test --state-machine metadata --workload register
  the workload 'register' does not fit the state machine 'metadata'. Choose --state-machine
  registers, or the workload topics
allowed-unknown-kind | a system that allows what no checker finds
  $ test --system lenient.py:Lenient --nodes 1 --nemesis none
  lenient allows 'duplicate' of queue-totals, which finds no such violations. Its kinds are: lost,
  phantom, duplicated
allowed-unknown-checker | a system that allows what a checker finds that does not exist
  $ test --system lenient.py:Strange --nodes 1 --nemesis none
  strange allows an anomaly of the checker 'queue-total', which does not exist. Did you mean
  'queue-totals'?
workload-of-another-system | a workload that the system does not serve
  $ test --system redis --workload topics
  the system 'redis' does not serve the workload 'topics'. It serves: register, set, queue,
  counter, bank, kv, multi-register, mutex, lease, unique-ids, sessions
images-alone | a system that has nothing but images
  $ test --system zookeeper --runtime local --nemesis none
  zookeeper does not run on the runtime local. Use --runtime docker
number-of-etcd | a number of entries that is none
  $ test --system etcd --setting snapshot-count=few
  the setting snapshot-count of etcd cannot be 'few'. Give a whole number from 10 to
  1000000000
election-of-etcd | an election before a few heartbeats could come
  $ test --system etcd --setting election-timeout=200
  etcd does not start with election-timeout=200 and heartbeat-interval=100. Let the first be at
  least 5 times the second
version-of-etcd | a version that is not offered
  $ test --system etcd@3.4.0
  there is no version '3.4.0' of the system 'etcd'. Choose one of 3.6.16, 3.5.35, 3.5.2
version-on-path | a version where there are no images
  $ test --system etcd@3.5.2 --runtime local --nemesis none
  the runtime local starts whichever etcd is on PATH, not 3.5.2. Write --system etcd, or use
  --runtime docker
sync-of-nats | a time between flushes that is none of the choices
  $ test --system nats --setting sync_interval=10s
  nats does not know '10s' as sync_interval. Choose default or always
replicas-of-nats | more nodes than a stream has replicas
  $ test --system nats --nodes 7
  nats does not run on 7 nodes. Give --nodes one of 2, 3, 4, 5
number-of-zookeeper | the length of a tick that is none
  $ test --system zookeeper --setting tickTime=soon
  the setting tickTime of zookeeper cannot be 'soon'. Give a whole number from 50 to 60000
standby-names-of-postgresql | names of standbys that are none
  $ test --system postgresql --setting synchronous_standby_names=n2+n3
  the setting synchronous_standby_names of postgresql cannot be 'n2+n3'. It takes none, *, or as in
  'ANY 1 (n2, n3)'
connections-of-postgresql | fewer connections than a server needs
  $ test --system postgresql --setting max_connections=9
  the setting max_connections of postgresql cannot be '9'. Give a whole number from 10 to 1000
standbys-of-a-version-of-postgresql | standbys of a version that has no program for them
  $ test --system postgresql@12.3 --nodes 3
  postgresql@12.3 has no program that copies a primary. Give --nodes 1, or leave @12.3 out
mode-of-patroni | a setting of Patroni's where it does not run
  $ test --system postgresql --setting synchronous_mode=on
  the setting synchronous_mode is Patroni's, which does not run here. Give --setting
  failover=patroni, too
flush-of-mariadb | a manner to flush that there is not
  $ test --system mariadb --setting innodb_flush_log_at_trx_commit=3
  mariadb does not know '3' as innodb_flush_log_at_trx_commit. Choose 1 or 0 or 2
level-of-list-append | a level of isolation that does not exist
  $ test --system postgresql --workload list-append --workload-option level=pl-3
  the option 'level' of the workload 'list-append' cannot be 'pl-3'. Choose one of: serializable,
  read-uncommitted, read-committed, parallel-snapshot-isolation, snapshot-isolation,
  repeatable-read, strong-session-serializable, strong-session-read-uncommitted,
  strong-session-read-committed, strong-session-parallel-snapshot-isolation,
  strong-session-snapshot-isolation, strong-session-repeatable-read, strict-serializable,
  strong-read-uncommitted, strong-read-committed, strong-parallel-snapshot-isolation,
  strong-snapshot-isolation, strong-repeatable-read, monotonic-atomic-view, read-atomic, causal
tick-of-rabbitmq | a time without a sign of life that is none
  $ test --system rabbitmq --setting net_ticktime=soon
  the setting net_ticktime of rabbitmq cannot be 'soon'. It takes seconds, a whole number between 1
  and 600
brokers-many | more brokers than names | test --state-machine metadata --setting brokers=9
  the setting 'brokers' is '9' beside 3 nodes that vote. Choose between 1 and 6 brokers
replicas-many | more replicas than brokers
  $ test --state-machine metadata --setting default.replication.factor=3
  default.replication.factor 3 cannot be met by 2 brokers. Correct the bug or the setting
bug-twice | a bug named twice | test --bug vote-not-persisted --bug vote-not-persisted
  the bug 'vote-not-persisted' is named twice. Name each --bug once
partition-all | a partition of all nodes | test --nemesis partition:all
  the fault 'partition' cannot have the target 'all'. Use one of: leader, follower, random:1, halves
partition-random-all | a partition with no other side | test --nemesis partition:random:3
  the target 'random:3' asks for 3 of 3 nodes. Ask for at most 2
kill-random-many | more nodes than there are | test --nemesis kill:random:5
  the target 'random:5' asks for 5 of 3 nodes. Ask for at most 3
kill-halves | a target of another fault | test --nemesis kill:halves
  the fault 'kill' cannot have the target 'halves'. Use one of: leader, follower, random:1
partition-of-one | a partition of one node | test --nodes 1 --nemesis partition
  the target 'leader' needs another node beside it, and the cluster is one node. Choose at least
  --nodes 2, or another fault
follower-of-one | a follower of nobody | test --nodes 1 --nemesis kill:follower
  the target 'follower' needs another node beside it, and the cluster is one node. Choose at least
  --nodes 2, or another fault
none-and-kill | no fault and a fault | test --nemesis none,kill
  'none' stands beside other faults in 'none,kill'. Name the faults, or none alone
hole-in-list | a hole in the list of faults | test --nemesis kill,,pause
  something is missing in the list of faults 'kill,,pause'. Write it as kind[:target],..., such as
  partition:leader,kill
empty-target | a colon without a target | test --nemesis partition:
  something is missing in the list of faults 'partition:'. Write it as kind[:target],..., such as
  partition:leader,kill
plan-in-list | a plan among faults | test --nemesis isolate-leader,kill
  the plan 'isolate-leader' stands in a list, and a plan is a whole schedule. Name the plan alone,
  or a list of fault kinds
no-room-for-faults | less time than one fault takes | test --nemesis kill --time-limit 5
  no fault fits into a time limit of 5 s. Choose a --time-limit of at least 8, or --nemesis none
no-room-for-plan | less time than a plan takes | test --nemesis leader-kill --time-limit 5
  no fault of the plan 'leader-kill' fits into a time limit of 5 s. Choose a --time-limit of at
  least 9, or --nemesis none
""",
        dict.fromkeys(
            ("allowed-unknown-kind", "allowed-unknown-checker"), with_file("lenient.py", LENIENT)
        ),
    ),
)
