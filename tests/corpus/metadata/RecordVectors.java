import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** Writes the bytes that Kafka gives to the records described on standard input; see README.md. */
public class RecordVectors {
    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        MetadataRecordSerde serde = MetadataRecordSerde.INSTANCE;
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode said = mapper.readTree(line);
            short version = (short) said.get("version").asInt();
            ApiMessage message =
                MetadataJsonConverters.readJson(
                    said.get("data"), (short) said.get("type").asInt(), version);
            ApiMessageAndVersion record = new ApiMessageAndVersion(message, version);
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer bytes = ByteBuffer.allocate(serde.recordSize(record, cache));
            serde.write(record, cache, new ByteBufferAccessor(bytes));
            System.out.println(line + "\t" + HexFormat.of().formatHex(bytes.array()));
        }
    }
}
