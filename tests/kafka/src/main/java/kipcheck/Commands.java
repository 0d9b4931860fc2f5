package kipcheck;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** Commands read from standard input by a thread of their own, as words; its end counts as "close". */
final class Commands {
    private Commands() {}

    static BlockingQueue<String[]> read() {
        BlockingQueue<String[]> queue = new LinkedBlockingQueue<>();
        Thread reader = new Thread(() -> {
            var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            try {
                for (String line = input.readLine(); line != null; line = input.readLine()) {
                    queue.add(line.trim().split(" "));
                }
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            } finally {
                queue.add(new String[] {"close"});
            }
        }, "commands");
        reader.setDaemon(true);
        reader.start();
        return queue;
    }

    /** Turns "key=value" arguments into client properties. */
    static Properties properties(String[] arguments) {
        var properties = new Properties();
        for (String argument : arguments) {
            int equals = argument.indexOf('=');
            properties.setProperty(argument.substring(0, equals), argument.substring(equals + 1));
        }
        return properties;
    }
}
