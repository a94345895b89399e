"""A small Kafka broker without records: lives with the controller, serves metadata. Pure.

It stands in for real brokers in the local and simulated runtimes. Its host must give:

- an observer replica (``nodes.quorum``: a node that is no voter) that follows the metadata log,
  whose committed records the host replays into a ``MetadataImage``; each new image goes to
  ``Lifecycle.step`` as ``ImageAdvanced``, and the leader that the replica knows answers
  ``FindController``;
- restart: the host keeps a snapshot of the log and the log behind it. A broker that comes back
  starts from the image of its newest snapshot, replays what lies in its log, and fetches only what
  it missed; nothing in this room is kept on disk except the broker epoch of a clean stop
  (``MayStop.broker_epoch``), which becomes ``BrokerIdentity.previous_broker_epoch``;
- a connection to each controller, whose failure is ``RequestFailed``, and a listener for clients,
  to be opened at ``BecameRunning`` as a real broker does.
"""
