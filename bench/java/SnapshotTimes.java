import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RaftSnapshotWriter;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.snapshot.FileRawSnapshotReader;
import org.apache.kafka.snapshot.FileRawSnapshotWriter;
import org.apache.kafka.snapshot.RecordsSnapshotReader;
import org.apache.kafka.snapshot.RecordsSnapshotWriter;

/**
 * How long Kafka's own classes take to load an image from a snapshot and to write it: FOLDER END
 * EPOCH TIMES. A line for each time: seconds of load and of write, by the wall and of all threads'
 * processor, and the number of partitions.
 */
public class SnapshotTimes {
    static final MetadataRecordSerde SERDE = MetadataRecordSerde.INSTANCE;
    static final int BATCH_BYTES = 8 * 1024 * 1024;
    /** Records that a real controller hands over at once. */
    static final int BATCH_RECORDS = 1024;

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[0]);
        OffsetAndEpoch id = new OffsetAndEpoch(Long.parseLong(args[1]), Integer.parseInt(args[2]));
        for (int time = 0; time < Integer.parseInt(args[3]); time++) {
            Path target = Files.createTempDirectory(folder, "written");
            double[] began = now();
            MetadataImage image = load(folder, id);
            double[] loaded = now();
            write(image, target, id);
            double[] written = now();
            System.out.printf(
                "%.4f %.4f %.4f %.4f %d%n",
                loaded[0] - began[0],
                loaded[1] - began[1],
                written[0] - loaded[0],
                written[1] - loaded[1],
                image.topics().topicsById().values().stream()
                    .mapToInt(topic -> topic.partitions().size())
                    .sum());
        }
    }

    /** The wall's time, and what all threads have had of the processors, in seconds. */
    static double[] now() {
        var system =
            (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return new double[] {System.nanoTime() / 1e9, system.getProcessCpuTime() / 1e9};
    }

    static MetadataImage load(Path folder, OffsetAndEpoch id) throws Exception {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        try (RecordsSnapshotReader<ApiMessageAndVersion> reader =
            RecordsSnapshotReader.of(
                FileRawSnapshotReader.open(folder, id),
                SERDE,
                BufferSupplier.create(),
                BATCH_BYTES,
                true,
                new LogContext())) {
            while (reader.hasNext()) {
                Batch<ApiMessageAndVersion> batch = reader.next();
                for (ApiMessageAndVersion record : batch.records()) {
                    delta.replay(record.message());
                }
            }
            delta.finishSnapshot();
            return delta.apply(
                new MetadataProvenance(
                    id.offset() - 1, id.epoch(), reader.lastContainedLogTimestamp(), true));
        }
    }

    static void write(MetadataImage image, Path folder, OffsetAndEpoch id) throws Exception {
        RecordsSnapshotWriter<ApiMessageAndVersion> snapshot =
            new RecordsSnapshotWriter.Builder()
                .setLastContainedLogTimestamp(image.provenance().lastContainedLogTimeMs())
                .setKraftVersion(KRaftVersion.KRAFT_VERSION_0)
                .setMaxBatchSizeBytes(BATCH_BYTES)
                .setRawSnapshotWriter(FileRawSnapshotWriter.create(folder, id))
                .build(SERDE);
        try (RaftSnapshotWriter writer = new RaftSnapshotWriter(snapshot, BATCH_RECORDS)) {
            image.write(writer, new ImageWriterOptions.Builder(image).build());
            writer.close(true);
        }
    }
}
