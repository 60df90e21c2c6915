// jedis and spymemcached against a server: `Doors HOST REDIS-PORT MEMCACHED-PORT`. The same passes against Redis 7 and memcached.

import java.net.InetSocketAddress;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import net.spy.memcached.AddrUtil;
import net.spy.memcached.BinaryConnectionFactory;
import net.spy.memcached.CASValue;
import net.spy.memcached.DefaultConnectionFactory;
import net.spy.memcached.MemcachedClient;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;

public class Doors {
    static void equal(Object got, Object wanted) {
        if (got == null ? wanted != null : !got.equals(wanted)) {
            throw new AssertionError("got " + got + ", wanted " + wanted);
        }
    }

    static void withJedis(String host, int port) throws Exception {
        try (Jedis r = new Jedis(host, port); Jedis other = new Jedis(host, port)) {
            r.flushAll();
            equal(r.set("a", "ä"), "OK");
            equal(r.get("a"), "ä");
            equal(r.hset("h", Map.of("x", "1", "y", "two")), 2L);
            equal(r.hgetAll("h"), Map.of("x", "1", "y", "two"));
            r.zadd("z", Map.of("one", 1.0, "two", 2.5));
            equal(r.zrange("z", 0, -1), List.of("one", "two"));
            r.sadd("s", "a", "b");
            equal(r.smembers("s"), Set.of("a", "b"));
            System.out.println("  jedis: types");

            Transaction transaction = r.multi();
            transaction.set("n", "1");
            transaction.incr("n");
            equal(transaction.exec(), List.of("OK", 2L));
            r.watch("n");
            other.incr("n");
            transaction = r.multi();
            transaction.incr("n");
            equal(transaction.exec(), null);
            Pipeline pipeline = r.pipelined();
            for (int i = 0; i < 2000; i++) {
                pipeline.incr("n");
            }
            equal(pipeline.syncAndReturnAll().get(1999), 2003L);
            equal(r.eval("return redis.call('incrby', KEYS[1], ARGV[1])", List.of("n"), List.of("7")), 2010L);
            try {
                r.lpush("n", "x");
                throw new AssertionError("it is no list");
            } catch (JedisDataException error) {
                equal(error.getMessage().startsWith("WRONGTYPE"), true);
            }
            System.out.println("  jedis: transactions and scripts");

            CompletableFuture<String> heard = new CompletableFuture<>();
            CompletableFuture<Void> subscribed = new CompletableFuture<>();
            Thread listener = new Thread(() -> {
                try (Jedis own = new Jedis(host, port)) {
                    own.subscribe(new JedisPubSub() {
                        @Override
                        public void onSubscribe(String channel, int count) {
                            subscribed.complete(null);
                        }

                        @Override
                        public void onMessage(String channel, String message) {
                            heard.complete(message);
                            unsubscribe();
                        }
                    }, "news");
                }
            });
            listener.start();
            subscribed.get(10, TimeUnit.SECONDS);
            equal(r.publish("news", "hello"), 1L);
            equal(heard.get(10, TimeUnit.SECONDS), "hello");
            listener.join();
            CompletableFuture<List<String>> popped = CompletableFuture.supplyAsync(() -> {
                try (Jedis own = new Jedis(host, port)) {
                    return own.blpop(10, "queue");
                }
            });
            r.rpush("queue", "job");
            equal(popped.get(20, TimeUnit.SECONDS), List.of("queue", "job"));
            System.out.println("  jedis: messages and waiting");

            long id = other.clientId();
            r.clientKill(redis.clients.jedis.params.ClientKillParams.clientKillParams().id(Long.toString(id)));
            try {
                other.get("a");
            } catch (JedisConnectionException gone) {
                // As it has to be: the next one is another.
            }
            try (JedisPooled pooled = new JedisPooled(host, port)) {
                equal(pooled.get("a"), "ä");
            }
            System.out.println("  jedis: reconnects");
        }
    }

    static void withSpymemcached(MemcachedClient c, String name) throws Exception {
        equal(c.flush().get(), true);
        equal(c.set("a", 100, "text").get(), true);
        equal(c.get("a"), "text");
        equal(c.add("a", 0, "x").get(), false);
        CASValue<Object> held = c.gets("a");
        equal(c.cas("a", held.getCas(), "new").toString(), "OK");
        equal(c.cas("a", held.getCas(), "newer").toString(), "EXISTS");
        equal(c.incr("n", 5, 7), 7L);
        equal(c.incr("n", 5), 12L);
        equal(c.decr("n", 100), 0L);
        for (int i = 0; i < 500; i++) {
            c.set("key" + i, 0, i);
        }
        String[] keys = new String[501];
        for (int i = 0; i < 501; i++) {
            keys[i] = "key" + i;
        }
        equal(c.getBulk(keys).size(), 500);
        equal(c.touch("a", 50).get(), true);
        equal(c.delete("a").get(), true);
        equal(c.get("a"), null);
        equal(c.getVersions().values().iterator().next(), "1.6.18");
        c.shutdown();
        System.out.println("  spymemcached: " + name);
    }

    public static void main(String[] arguments) throws Exception {
        java.util.logging.LogManager.getLogManager().reset();
        System.setProperty("net.spy.log.LoggerImpl", "net.spy.memcached.compat.log.SunLogger");
        String host = arguments[0];
        withJedis(host, Integer.parseInt(arguments[1]));
        String memcached = host + ":" + arguments[2];
        withSpymemcached(new MemcachedClient(new DefaultConnectionFactory(), AddrUtil.getAddresses(memcached)), "text");
        withSpymemcached(new MemcachedClient(new BinaryConnectionFactory(), AddrUtil.getAddresses(memcached)), "binary");
        System.exit(0);
    }
}
