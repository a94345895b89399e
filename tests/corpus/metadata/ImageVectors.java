import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/** Writes the images that Kafka makes of the records on standard input; see README.md. */
public class ImageVectors {
    static final MetadataRecordSerde SERDE = MetadataRecordSerde.INSTANCE;

    public static void main(String[] args) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println(line + "\t" + replayed(line.split(" ")));
        }
    }

    static String replayed(String[] records) {
        MetadataImage image = MetadataImage.EMPTY;
        for (int at = 0; at < records.length; at++) {
            ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(records[at]));
            MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
            delta.replay(SERDE.read(new ByteBufferAccessor(bytes), bytes.remaining()).message());
            image = delta.apply(new MetadataProvenance(at, 1, 1000 + at, true));
        }
        RecordListWriter writer = new RecordListWriter();
        MetadataVersion version = MetadataVersion.fromFeatureLevel((short) 30);
        image.write(writer, new ImageWriterOptions.Builder(version)
                .setEligibleLeaderReplicasEnabled(true)
                .build());
        List<String> written = new ArrayList<>();
        for (ApiMessageAndVersion record : writer.records()) {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer bytes = ByteBuffer.allocate(SERDE.recordSize(record, cache));
            SERDE.write(record, cache, new ByteBufferAccessor(bytes));
            written.add(HexFormat.of().formatHex(bytes.array()));
        }
        return String.join(" ", written);
    }
}
