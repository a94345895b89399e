import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.PartitionAssignment;
import org.apache.kafka.metadata.placement.PlacementSpec;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.placement.UsableBroker;

/** Writes where Kafka puts the replicas of new partitions; see README.md. */
public class PlacementVectors {
    static final double[] FRACTIONS = {0.0, 0.3, 0.5, 0.77, 0.99};

    /** Always draws the same fraction, so that the order of the draws does not matter. */
    static class FixedFraction extends Random {
        final double fraction;

        FixedFraction(double fraction) {
            this.fraction = fraction;
        }

        @Override
        public int nextInt(int bound) {
            return (int) (fraction * bound);
        }
    }

    public static void main(String[] args) {
        Random random = new Random(7);
        for (int line = 0; line < 400; line++) {
            int count = random.nextInt(8);
            int racks = 1 + random.nextInt(4);
            List<UsableBroker> brokers = new ArrayList<>();
            for (int at = 0; at < count; at++) {
                int rack = random.nextInt(racks + 1);
                boolean isFenced = random.nextInt(4) == 0;
                Optional<String> name = rack == 0 ? Optional.empty() : Optional.of("r" + rack);
                brokers.add(new UsableBroker(at * 3 + 1, name, isFenced));
            }
            int partitions = 1 + random.nextInt(14);
            int factor = random.nextInt(12) == 0 ? 0 : 1 + random.nextInt(Math.max(1, count + 1));
            double fraction = FRACTIONS[random.nextInt(FRACTIONS.length)];
            String told = brokers.stream()
                    .map(each -> each.id() + ":" + each.rack().orElse("") + ":"
                            + (each.fenced() ? "f" : "u"))
                    .collect(Collectors.joining(","));
            System.out.println(String.join("\t", String.valueOf(fraction), told,
                    String.valueOf(partitions), String.valueOf(factor),
                    placed(brokers, partitions, (short) factor, fraction)));
        }
    }

    static String placed(List<UsableBroker> brokers, int partitions, short factor, double fraction) {
        ClusterDescriber cluster = new ClusterDescriber() {
            @Override
            public Iterator<UsableBroker> usableBrokers() {
                return brokers.iterator();
            }

            @Override
            public Uuid defaultDir(int brokerId) {
                return Uuid.ZERO_UUID;
            }
        };
        try {
            return new StripedReplicaPlacer(new FixedFraction(fraction))
                    .place(new PlacementSpec(0, partitions, factor), cluster).assignments().stream()
                    .map(PartitionAssignment::replicas)
                    .map(each -> each.stream().map(String::valueOf).collect(Collectors.joining(",")))
                    .collect(Collectors.joining(";"));
        } catch (RuntimeException error) {
            return "! " + error.getMessage();
        }
    }
}
