"""The configuration of a node that is the whole quorum, its folder in a test's own."""

from pathlib import Path

from splitbrain.nodes.quorum.identifiers import DirectoryId, NodeId
from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.nodes.server.machine.configuration import Listener, NodeConfiguration

DIRECTORY = DirectoryId("0123456789abcdef" * 2)


def configuration_of(folder: Path) -> NodeConfiguration:
    return NodeConfiguration(
        name="n1",
        node_id=1,
        directory_id=DIRECTORY,
        cluster_id="AAAAAAAAAAAAAAAAAAAAAA",
        voters=(Voter(NodeId(1), DIRECTORY, "127.0.0.1", 1),),
        quorum_listener=Listener("127.0.0.1", 0),
        client_listener=Listener("127.0.0.1", 0),
        data_folder=str(folder / "data"),
        state_event_file=str(folder / "state_events.jsonl"),
    )
