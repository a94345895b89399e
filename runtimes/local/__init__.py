"""The runtime ``local``: nodes as processes of this machine, without a container engine.

Where the kernel allows it each node has a network of its own (namespaces, also without root), so
links can be cut; elsewhere nodes are plain processes on the loopback interface. See
``docs/decisions/0008-local-runtime.md``.
"""
