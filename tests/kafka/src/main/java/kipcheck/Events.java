package kipcheck;

import java.util.Collection;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;

/** What a driven program reports to the recorder: one JSON object per line of standard output. */
final class Events {
    private Events() {}

    /** Prints {"at": epoch milliseconds, "event": name}. */
    static void say(String event) {
        print("{\"at\":" + System.currentTimeMillis() + ",\"event\":\"" + event + "\"}");
    }

    /** Prints the same with the partitions concerned and every partition owned once the event is over. */
    static void say(String event, Collection<TopicPartition> partitions, Collection<TopicPartition> owned) {
        print("{\"at\":" + System.currentTimeMillis() + ",\"event\":\"" + event + "\",\"partitions\":" + json(partitions)
                + ",\"owned\":" + json(owned) + "}");
    }

    /** Topic names need no escapes: Kafka allows letters, digits, dots, underscores and dashes only. */
    private static String json(Collection<TopicPartition> partitions) {
        return partitions.stream().map(TopicPartition::toString).sorted()
                .collect(Collectors.joining("\",\"", "[\"", "\"]")).replace("[\"\"]", "[]");
    }

    private static synchronized void print(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
