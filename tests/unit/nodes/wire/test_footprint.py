"""Memory of a node before it has any data: core, storage, and every quorum API."""

import subprocess
import sys

RESIDENT_MIB_MAX = 45

PROGRAM = """
import sys
from pathlib import Path
from splitbrain.nodes.quorum.messages import ErrorCode, VoteAnswer, VoteRequest
from splitbrain.nodes.storage.disk import DiskFileSystem
from splitbrain.nodes.storage.log import LogStore
from splitbrain.nodes.storage.quorum_state import QuorumStateFile
from splitbrain.nodes.wire.apis import ApiKey, RequestHeader
from splitbrain.nodes.wire.messages import decode_answer, decode_request
from splitbrain.nodes.wire.messages import encode_answer, encode_request
request = VoteRequest("c", 2, "0" * 32, 3, 1, "0" * 32, 2, 10, True)
received = decode_request(encode_request(request, 1, "n1")[4:])
answer = VoteAnswer(ErrorCode.NONE, None, 3, True)
decode_answer(encode_answer(answer, received.header)[4:], ApiKey.VOTE, 2)
status = Path("/proc/self/status").read_text()
resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
print(resident.split()[1], "kio" in sys.modules)
"""


def test_core_storage_and_wire_stay_small_and_leave_kio_out() -> None:
    output = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True
    ).stdout
    resident_kib, kio_loaded = output.split()
    assert int(resident_kib) / 1024 < RESIDENT_MIB_MAX
    assert kio_loaded == "False"
