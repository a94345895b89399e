import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.snapshot.FileRawSnapshotReader;
import org.apache.kafka.snapshot.FileRawSnapshotWriter;
import org.apache.kafka.snapshot.RecordsSnapshotReader;
import org.apache.kafka.snapshot.RecordsSnapshotWriter;

/** Writes records (hex, one a line) as Kafka's snapshot, or prints those of one; see README.md. */
public class SnapshotVectors {
    static final MetadataRecordSerde SERDE = MetadataRecordSerde.INSTANCE;

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[1]);
        OffsetAndEpoch id =
            new OffsetAndEpoch(Long.parseLong(args[2]), Integer.parseInt(args[3]));
        if (args[0].equals("write")) {
            write(folder, id, Long.parseLong(args[4]));
        } else {
            read(folder, id);
        }
    }

    static void write(Path folder, OffsetAndEpoch id, long timestamp) throws Exception {
        List<ApiMessageAndVersion> records = new ArrayList<>();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(line));
            records.add(SERDE.read(new ByteBufferAccessor(bytes), bytes.remaining()));
        }
        try (RecordsSnapshotWriter<ApiMessageAndVersion> writer =
            new RecordsSnapshotWriter.Builder()
                .setLastContainedLogTimestamp(timestamp)
                .setKraftVersion(KRaftVersion.KRAFT_VERSION_0)
                .setRawSnapshotWriter(FileRawSnapshotWriter.create(folder, id))
                .build(SERDE)) {
            // Small batches, so that there is more than one.
            for (int at = 0; at < records.size(); at += 8) {
                writer.append(records.subList(at, Math.min(at + 8, records.size())));
            }
            writer.freeze();
        }
    }

    static void read(Path folder, OffsetAndEpoch id) throws Exception {
        try (RecordsSnapshotReader<ApiMessageAndVersion> reader =
            RecordsSnapshotReader.of(
                FileRawSnapshotReader.open(folder, id),
                SERDE,
                BufferSupplier.NO_CACHING,
                8 * 1024 * 1024,
                true,
                new LogContext())) {
            System.out.println(reader.lastContainedLogTimestamp());
            while (reader.hasNext()) {
                Batch<ApiMessageAndVersion> batch = reader.next();
                for (ApiMessageAndVersion record : batch.records()) {
                    ObjectSerializationCache cache = new ObjectSerializationCache();
                    ByteBuffer bytes = ByteBuffer.allocate(SERDE.recordSize(record, cache));
                    SERDE.write(record, cache, new ByteBufferAccessor(bytes));
                    System.out.println(HexFormat.of().formatHex(bytes.array()));
                }
            }
        }
    }
}
