"""Configs of brokers that a controller must know: lists, and those that change at run time.

A controller does not check a broker's configs: the broker did before it passed the change on.

Source: Kafka 4.3.1's ``KafkaConfig`` and ``DynamicBrokerConfig``.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from splitbrain.nodes.controller.configs.config_types import ConfigType

#: Configs that can be appended to, with their defaults.
BROKER_LISTS: Final[Mapping[str, str | None]] = MappingProxyType(
    {
        "advertised.listeners": None,
        "config.providers": "",
        "controller.listener.names": None,
        "controller.quorum.bootstrap.servers": "",
        "controller.quorum.voters": "",
        "cordoned.log.dirs": "",
        "early.start.listeners": None,
        "group.consumer.assignors": "uniform,range",
        "group.coordinator.rebalance.protocols": "classic,consumer,streams",
        "group.share.assignors": "simple",
        "kafka.metrics.reporters": "",
        "listeners": "PLAINTEXT://:9092",
        "log.cleanup.policy": "delete",
        "log.dir": "/tmp/kafka-logs",  # noqa: S108 - Kafka's default
        "log.dirs": None,
        "metric.reporters": "org.apache.kafka.common.metrics.JmxReporter",
        "process.roles": None,
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.principal.to.local.rules": "DEFAULT",
        "sasl.oauthbearer.expected.audience": "",
        "ssl.cipher.suites": "",
        "ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
    }
)

#: Names of configs that can change while a broker runs, by their type.
_DYNAMIC: Final[Mapping[ConfigType, str]] = MappingProxyType(
    {
        ConfigType.BOOLEAN: """
            follower.fetch.last.tiered.offset.enable log.preallocate
            transaction.partition.verification.enable unclean.leader.election.enable
        """,
        ConfigType.CLASS: """
            principal.builder.class ssl.engine.factory.class
        """,
        ConfigType.DOUBLE: """
            log.cleaner.io.buffer.load.factor log.cleaner.io.max.bytes.per.second
            log.cleaner.min.cleanable.ratio sasl.kerberos.ticket.renew.jitter
            sasl.kerberos.ticket.renew.window.factor sasl.login.refresh.window.factor
            sasl.login.refresh.window.jitter
        """,
        ConfigType.INT: """
            background.threads compression.gzip.level compression.lz4.level compression.zstd.level
            group.consumer.assignment.interval.ms group.coordinator.cached.buffer.max.bytes
            group.share.assignment.interval.ms group.streams.assignment.interval.ms
            log.cleaner.io.buffer.size log.cleaner.threads log.index.interval.bytes
            log.index.size.max.bytes log.segment.bytes max.connection.creation.rate max.connections
            max.connections.per.ip message.max.bytes min.insync.replicas num.io.threads
            num.network.threads num.recovery.threads.per.data.dir num.replica.fetchers
            producer.id.expiration.ms remote.fetch.max.wait.ms
            remote.log.manager.copier.thread.pool.size
            remote.log.manager.expiration.thread.pool.size
            remote.log.manager.follower.thread.pool.size remote.log.reader.threads
            share.coordinator.cached.buffer.max.bytes
        """,
        ConfigType.LIST: """
            config.providers cordoned.log.dirs listeners log.cleanup.policy metric.reporters
            sasl.enabled.mechanisms sasl.kerberos.principal.to.local.rules ssl.cipher.suites
            ssl.enabled.protocols
        """,
        ConfigType.LONG: """
            log.cleaner.backoff.ms log.cleaner.dedupe.buffer.size log.cleaner.delete.retention.ms
            log.cleaner.max.compaction.lag.ms log.cleaner.min.compaction.lag.ms
            log.flush.interval.messages log.flush.interval.ms log.local.retention.bytes
            log.local.retention.ms log.message.timestamp.after.max.ms
            log.message.timestamp.before.max.ms log.retention.bytes log.retention.ms
            log.roll.jitter.ms log.roll.ms log.segment.delete.delay.ms
            remote.list.offsets.request.timeout.ms remote.log.index.file.cache.total.size.bytes
            remote.log.manager.copy.max.bytes.per.second
            remote.log.manager.fetch.max.bytes.per.second sasl.kerberos.min.time.before.relogin
        """,
        ConfigType.PASSWORD: """
            sasl.jaas.config ssl.key.password ssl.keystore.certificate.chain ssl.keystore.key
            ssl.keystore.password ssl.truststore.certificates ssl.truststore.password
        """,
        ConfigType.SHORT: """
            sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
        """,
        ConfigType.STRING: """
            compression.type listener.security.protocol.map log.message.timestamp.type
            max.connections.per.ip.overrides sasl.kerberos.kinit.cmd sasl.kerberos.service.name
            sasl.mechanism.inter.broker.protocol ssl.client.auth
            ssl.endpoint.identification.algorithm ssl.keymanager.algorithm ssl.keystore.location
            ssl.keystore.type ssl.protocol ssl.provider ssl.secure.random.implementation
            ssl.trustmanager.algorithm ssl.truststore.location ssl.truststore.type
        """,
        ConfigType.UNKNOWN: """
            follower.replication.throttled.rate leader.replication.throttled.rate
            replica.alter.log.dirs.io.max.bytes.per.second
        """,
    }
)
DYNAMIC_BROKER_CONFIGS: Final[Mapping[str, ConfigType]] = MappingProxyType(
    {name: kind for kind, names in _DYNAMIC.items() for name in names.split()}
)
