package kipcheck;

import java.time.Duration;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * One consumer of a group, driven from standard input.
 *
 * <p>Arguments are consumer properties, {@code key=value}. Commands, one a line:
 * {@code subscribe a,b} (again: changes the subscription), {@code sleep MILLIS} (the application stops polling),
 * {@code commit-when-revoked} (from now on, its positions in onPartitionsRevoked), {@code close} (also at the end of the input). Rebalance callbacks are reported as {@link Events} the moment they finish.
 */
public final class GroupMember {
    private GroupMember() {}

    public static void main(String[] arguments) throws InterruptedException {
        BlockingQueue<String[]> commands = Commands.read();
        try (var consumer = new KafkaConsumer<>(
                Commands.properties(arguments), new StringDeserializer(), new StringDeserializer())) {
            var listener = new Listener(consumer::commitSync);
            boolean subscribed = false;
            while (true) {
                String[] command = subscribed ? commands.poll() : commands.take();
                if (command == null) {
                    consumer.poll(Duration.ofMillis(100));
                    continue;
                }
                switch (command[0]) {
                    case "subscribe" -> {
                        consumer.subscribe(List.of(command[1].split(",")), listener);
                        subscribed = true;
                    }
                    case "sleep" -> {
                        Events.say("sleeping");
                        Thread.sleep(Long.parseLong(command[1]));
                        Events.say("awake");
                    }
                    case "commit-when-revoked" -> listener.commits = true;
                    case "close" -> {
                        return;
                    }
                    default -> throw new IllegalArgumentException(command[0]);
                }
            }
        } finally {
            Events.say("closed");
        }
    }

    /** Keeps the set that the application believes it owns, from the callbacks alone. */
    private static final class Listener implements ConsumerRebalanceListener {
        private final Set<TopicPartition> owned = new HashSet<>();
        private final Runnable commit;
        private boolean commits;

        Listener(Runnable commit) {
            this.commit = commit;
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            owned.addAll(partitions);
            Events.say("assigned", partitions, owned);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            if (commits) {
                commit.run();
            }
            owned.removeAll(partitions);
            Events.say("revoked", partitions, owned);
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            owned.removeAll(partitions);
            Events.say("lost", partitions, owned);
        }
    }
}
