package kipcheck;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Creates and grows topics and keeps them busy, driven from standard input.
 *
 * <p>Arguments are client properties, {@code key=value}. Commands, one a line: {@code create TOPIC PARTITIONS},
 * {@code grow TOPIC PARTITIONS}, {@code feed TOPIC} (from now on ten records a second, round robin over its
 * partitions as they were at the time), {@code close}. Each command is answered by an {@link Events} line "done".
 */
public final class Topics {
    private static final int PERIOD_MILLIS = 100;

    private Topics() {}

    public static void main(String[] arguments) throws InterruptedException, ExecutionException {
        BlockingQueue<String[]> commands = Commands.read();
        Properties properties = Commands.properties(arguments);
        try (var admin = Admin.create(properties);
                var producer = new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
            var fed = new LinkedHashMap<String, Integer>();
            for (int tick = 0; ; tick++) {
                String[] command = commands.poll(PERIOD_MILLIS, TimeUnit.MILLISECONDS);
                if (command == null) {
                    int number = tick;
                    fed.forEach((topic, partitions) -> producer.send(
                            new ProducerRecord<>(topic, number % partitions, null, "record " + number)));
                    continue;
                }
                switch (command[0]) {
                    case "create" -> admin.createTopics(
                            List.of(new NewTopic(command[1], Integer.parseInt(command[2]), (short) 1))).all().get();
                    case "grow" -> admin.createPartitions(
                            Map.of(command[1], NewPartitions.increaseTo(Integer.parseInt(command[2])))).all().get();
                    case "feed" -> fed.put(command[1], producer.partitionsFor(command[1]).size());
                    case "close" -> {
                        return;
                    }
                    default -> throw new IllegalArgumentException(command[0]);
                }
                Events.say("done");
            }
        }
    }
}
