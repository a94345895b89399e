package org.apache.kafka.controller;

import java.util.AbstractMap.SimpleEntry;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Map.Entry;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import kafka.server.ControllerConfigurationValidator;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.ConfigResource.Type;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Writes what Kafka's controller makes of changes of configs; see README.md. */
public class ConfigVectors {
    static final String[] VALUES = {
        "", " ", " 5 ", "-2", "-1", "0", "1", "2", "7", "+7", "-0", "23", "100", "1000", "15001",
        "50000", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808", "1.5",
        ".5", "1e-5", "1.0E10", "1d", "NaN", "-Infinity", "1e", "0x1", "true", " TRUE", "yes",
        "false", "foo", "a,b", "compact", "delete", "compact,delete", "delete,delete",
        "compact , delete", "compact,,delete", ",", "Compact", "producer", "gzip", "zstd",
        "CreateTime", "LogAppendTime", "1:2", "1:2,3:4", "1:2,*", "*", "1:2,x", "latest",
        "earliest", "none", "by_duration", "by_duration:PT1H", "by_duration:PT-1H",
        "by_duration:-PT1H", "by_duration:P1DT2H3M4.5S", "by_duration:PT-0.5S", "by_duration:P",
        "by_duration:PT", "by_duration:p1d", "by_duration:1h", "read_committed",
        "client_id=a.*", "client_id=a,client_source_port=[", "client_id=", "client_id=a=b",
        "client_id=a=", "other=a", "client_id",
    };
    static final String[][] COMBINATIONS = {
        {"2", "t", "min.compaction.lag.ms=10", "max.compaction.lag.ms=9"},
        {"2", "t", "min.compaction.lag.ms=10", "max.compaction.lag.ms=10"},
        {"2", "t", "retention.ms=x", "segment.bytes=y"},
        {"2", "t", "no.such.config=1"},
        {"2", "t", "remote.log.delete.on.disable=true"},
        {"2", "absent", "retention.ms=1"},
        {"2", "absent", "retention.ms=x"},
        {"2", "", "retention.ms=1"},
        {"2", "a b", "retention.ms=1"},
        {"4", "", "log.retention.ms=x"},
        {"4", "1", "no.such.config=1"},
        {"4", "-1", "log.retention.ms=1"},
        {"4", "one", "log.retention.ms=1"},
        {"4", "9999999999", "log.retention.ms=1"},
        {"16", "", "interval.ms=1000"},
        {"16", "s", "no.such.config=1"},
        {"32", "", "share.session.timeout.ms=50000"},
        {"32", "g", "no.such.config=1"},
        {"32", "g", "consumer.session.timeout.ms=50000", "consumer.heartbeat.interval.ms=15000"},
    };
    static final String[][] OPERATIONS = {
        {"2", "t", "", "cleanup.policy:APPEND:compact"},
        {"2", "t", "", "cleanup.policy:APPEND:delete"},
        {"2", "t", "", "cleanup.policy:SUBTRACT:delete"},
        {"2", "t", "cleanup.policy=compact", "cleanup.policy:APPEND:delete,delete"},
        {"2", "t", "cleanup.policy=compact,delete", "cleanup.policy:SUBTRACT:compact,x"},
        {"2", "t", "cleanup.policy=compact", "cleanup.policy:APPEND:"},
        {"2", "t", "cleanup.policy=compact", "cleanup.policy:APPEND:,"},
        {"2", "t", "cleanup.policy=compact", "cleanup.policy:APPEND:x"},
        {"2", "t", "", "retention.ms:APPEND:1"},
        {"2", "t", "", "no.such.config:APPEND:1"},
        {"2", "t", "retention.ms=5", "retention.ms:SET:5"},
        {"2", "t", "retention.ms=5", "retention.ms:SET:6"},
        {"2", "t", "retention.ms=5", "retention.ms:DELETE:"},
        {"2", "t", "", "retention.ms:DELETE:"},
        {"2", "t", "", "no.such.config:DELETE:"},
        {"2", "t", "remote.storage.enable=true", "remote.storage.enable:DELETE:"},
        {"2", "t", "remote.storage.enable=true", "remote.storage.enable:SET:false",
            "remote.log.delete.on.disable:SET:true"},
        {"2", "t", "max.compaction.lag.ms=9", "min.compaction.lag.ms:SET:10"},
        {"2", "t", "leader.replication.throttled.replicas=0:1",
            "leader.replication.throttled.replicas:APPEND:0:2"},
        {"4", "1", "log.retention.ms=5", "log.retention.ms:SET:5"},
        {"4", "1", "", "log.retention.ms:DELETE:"},
        {"4", "", "", "metric.reporters:APPEND:a"},
        {"4", "", "", "log.cleanup.policy:APPEND:x"},
        {"4", "", "", "ssl.enabled.protocols:SUBTRACT:TLSv1.2"},
        {"4", "", "", "advertised.listeners:APPEND:a"},
        {"4", "", "", "log.retention.ms:APPEND:1"},
        {"16", "s", "", "metrics:APPEND:a"},
        {"16", "s", "interval.ms=1000", "interval.ms:DELETE:"},
        {"32", "g", "", "share.isolation.level:SET:read_committed"},
        {"4", "", "", "cordoned.log.dirs:SET:/a,/b"},
    };
    static final String[][] CLUSTERS = {
        {"", ""},
        {"", "retention.ms=5|cleanup.policy=compact , delete"},
        {"log.retention.hours=2|log.roll.hours=x|log.roll.jitter.hours=", ""},
        {"log.retention.hours=2|log.retention.minutes=3", "segment.ms=9"},
        {"log.retention.hours=2|log.retention.ms=7|message.max.bytes=11", "retention.ms=1"},
        {"min.insync.replicas=2|log.cleaner.min.cleanable.ratio=0.25", "internal.segment.bytes=5"},
        {"log.flush.scheduler.interval.ms=6", "min.insync.replicas=3"},
    };

    static final KafkaConfig CONFIG = config();
    static int rotation = 0;

    public static void main(String[] args) {
        switch (args[0]) {
            case "definitions" -> definitions();
            case "changes" -> changes();
            default -> effective();
        }
    }

    static void definitions() {
        define("topic", LogConfig.configDefCopy());
        define("group", GroupConfig.CONFIG_DEF);
        define("metrics", ClientMetricsConfigs.configDef());
        define("broker", KafkaConfig.configDef());
        DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS.stream().sorted()
                .forEach(each -> System.out.println("dynamic\t" + each));
    }

    static void define(String kind, ConfigDef definitions) {
        for (ConfigDef.ConfigKey key : definitions.configKeys().values()) {
            Object value = key.hasDefault() ? key.defaultValue : null;
            String told = value == null ? "null" : "=" + ConfigDef.convertToString(value, key.type);
            System.out.println(String.join("\t", kind, key.name, key.type.toString(), told,
                    String.valueOf(key.internalConfig)));
        }
    }

    static void changes() {
        LogConfig.configNames().forEach(each -> setAll("2", "t", each));
        new TreeSet<>(GroupConfig.configNames()).forEach(each -> setAll("32", "g", each));
        new TreeSet<>(ClientMetricsConfigs.names()).forEach(each -> setAll("16", "s", each));
        for (String[] row : COMBINATIONS) {
            List<String> operations = new ArrayList<>();
            for (String change : List.of(row).subList(2, row.length)) {
                operations.add(change.replaceFirst("=", ":SET:"));
            }
            change(row[0], row[1], "", operations);
            replace(row[0], row[1], "", String.join("|", List.of(row).subList(2, row.length)));
        }
        for (String[] row : OPERATIONS) {
            change(row[0], row[1], row[2], List.of(row).subList(3, row.length));
        }
        replace("2", "t", "retention.ms=5|segment.bytes=1048576", "retention.ms=6");
        replace("2", "t", "retention.ms=5", "retention.ms=5");
        replace("2", "t", "retention.ms=5", "");
        replace("2", "t", "remote.storage.enable=true", "");
        replace("4", "1", "log.retention.ms=5|log.roll.ms=5", "log.retention.ms=5");
    }

    static void setAll(String type, String name, String config) {
        // Every third value, so that the configs of each type and bound share all of them.
        for (int at = rotation++ % 3; at < VALUES.length; at += 3) {
            change(type, name, "", List.of(config + ":SET:" + VALUES[at]));
        }
    }

    static void change(String type, String name, String before, List<String> operations) {
        Map<String, Entry<OpType, String>> changes = new LinkedHashMap<>();
        for (String operation : operations) {
            String[] parts = operation.split(":", 3);
            changes.put(parts[0], new SimpleEntry<>(OpType.valueOf(parts[1]), parts[2]));
        }
        ConfigResource resource = new ConfigResource(Type.forId(Byte.parseByte(type)), name);
        ControllerResult<Map<ConfigResource, ApiError>> result = manager(resource, before)
                .incrementalAlterConfigs(Map.of(resource, changes), false, true);
        tell("change", type, name, before, String.join("|", operations),
                result.response().get(resource), result.records());
    }

    static void replace(String type, String name, String before, String after) {
        ConfigResource resource = new ConfigResource(Type.forId(Byte.parseByte(type)), name);
        ControllerResult<Map<ConfigResource, ApiError>> result = manager(resource, before)
                .legacyAlterConfigs(Map.of(resource, pairs(after)), false, true);
        tell("replace", type, name, before, after, result.response().get(resource),
                result.records());
    }

    static void tell(String kind, String type, String name, String before, String asked,
                     ApiError error, List<ApiMessageAndVersion> records) {
        String written = records.stream().map(each -> (ConfigRecord) each.message())
                .map(each -> each.name() + (each.value() == null ? "" : "=" + each.value()))
                .sorted().collect(Collectors.joining("|"));
        System.out.println(String.join("\t", kind, type, name, before, asked,
                String.valueOf(error.error().code()), String.valueOf(error.message()), written));
    }

    static void effective() {
        for (String[] row : CLUSTERS) {
            ConfigurationControlManager manager =
                    manager(ConfigurationControlManager.DEFAULT_NODE, row[0]);
            String told = new TreeMap<>(manager.computeEffectiveTopicConfigs(pairs(row[1])))
                    .values().stream()
                    .map(each -> each.name() + "=" + each.source() + "=" + each.value())
                    .collect(Collectors.joining("|"));
            System.out.println(String.join("\t", row[0], row[1], told));
        }
    }

    static ConfigurationControlManager manager(ConfigResource resource, String before) {
        FeatureControlManager features = new FeatureControlManager.Builder().build();
        features.replay(new FeatureLevelRecord().setName("metadata.version")
                .setFeatureLevel((short) 30));
        ConfigurationControlManager manager = new ConfigurationControlManager.Builder()
                .setKafkaConfigSchema(KafkaRaftServer.configSchema())
                .setValidator(new ControllerConfigurationValidator(CONFIG))
                .setFeatureControl(features)
                .setExistenceChecker(each -> {
                    if (each.type() == Type.TOPIC && !each.name().equals("t")) {
                        throw new UnknownTopicOrPartitionException(
                                "The topic '" + each.name() + "' does not exist.");
                    }
                })
                .build();
        pairs(before).forEach((name, value) -> manager.replay(new ConfigRecord()
                .setResourceType(resource.type().id()).setResourceName(resource.name())
                .setName(name).setValue(value)));
        return manager;
    }

    static Map<String, String> pairs(String text) {
        Map<String, String> pairs = new LinkedHashMap<>();
        for (String pair : text.isEmpty() ? new String[0] : text.split("\\|")) {
            String[] parts = pair.split("=", 2);
            pairs.put(parts[0], parts[1]);
        }
        return pairs;
    }

    static KafkaConfig config() {
        Properties properties = new Properties();
        properties.put("process.roles", "controller");
        properties.put("node.id", "3000");
        properties.put("controller.quorum.voters", "3000@localhost:9093");
        properties.put("controller.listener.names", "CONTROLLER");
        properties.put("listeners", "CONTROLLER://localhost:9093");
        return KafkaConfig.fromProps(properties, false);
    }
}
