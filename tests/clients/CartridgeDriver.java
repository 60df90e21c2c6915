// The connector of Maven's `io.tarantool:cartridge-driver`: arguments are host and port.

import io.tarantool.driver.api.TarantoolClient;
import io.tarantool.driver.api.TarantoolClientFactory;
import io.tarantool.driver.api.TarantoolResult;
import io.tarantool.driver.api.conditions.Conditions;
import io.tarantool.driver.api.space.TarantoolSpaceOperations;
import io.tarantool.driver.api.tuple.DefaultTarantoolTupleFactory;
import io.tarantool.driver.api.tuple.TarantoolTuple;
import io.tarantool.driver.api.tuple.operations.TupleOperations;
import io.tarantool.driver.mappers.factories.DefaultMessagePackMapperFactory;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;

public class CartridgeDriver {
    static final int CHECK_MAX_S = 20;
    static final String PASSWORD = "secret word";

    static String host;
    static int port;
    static int failures;

    interface Check {
        void run(TarantoolClient<TarantoolTuple, TarantoolResult<TarantoolTuple>> client) throws Exception;
    }

    static void equal(Object got, Object wanted) {
        // Numbers come back in the narrowest type that holds them.
        if (!String.valueOf(got).equals(String.valueOf(wanted))) {
            throw new AssertionError("got " + got + ", wanted " + wanted);
        }
    }

    static <T> T take(CompletableFuture<T> future) throws Exception {
        return future.get(CHECK_MAX_S, TimeUnit.SECONDS);
    }

    /** The work fails, and says these words. */
    static void refused(String words, Callable<?> work) throws Exception {
        Object got;
        try {
            got = work.call();
        } catch (Exception error) {
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                if (String.valueOf(cause.getMessage()).contains(words)) {
                    return;
                }
            }
            throw error;
        }
        throw new AssertionError("got " + got + ", and no error: " + words);
    }

    static TarantoolTuple row(Object... fields) {
        return new DefaultTarantoolTupleFactory(DefaultMessagePackMapperFactory.getInstance().defaultComplexTypesMapper()).create(fields);
    }

    /** Fields of rows, as lists. */
    static List<List<Object>> fields(TarantoolResult<TarantoolTuple> rows) {
        List<List<Object>> all = new ArrayList<>();
        for (TarantoolTuple row : rows) {
            List<Object> one = new ArrayList<>();
            for (int at = 0; at < row.size(); at += 1) {
                one.add(row.getObject(at).orElse(null));
            }
            all.add(one);
        }
        return all;
    }

    static List<Object> ids(TarantoolResult<TarantoolTuple> rows) {
        List<Object> all = new ArrayList<>();
        fields(rows).forEach(row -> all.add(row.get(0)));
        return all;
    }

    static TarantoolClient<TarantoolTuple, TarantoolResult<TarantoolTuple>> connect(String user, String password, int toPort, int requestMaxMs) {
        return TarantoolClientFactory.createClient()
            .withAddress(host, toPort)
            .withCredentials(user, password)
            .withRequestTimeout(requestMaxMs)
            .build();
    }

    /** A check on empty spaces. */
    static void check(String name, Check check) {
        try (TarantoolClient<TarantoolTuple, TarantoolResult<TarantoolTuple>> client = connect("tester", PASSWORD, port, CHECK_MAX_S * 1000)) {
            take(client.call("clear"));
            check.run(client);
            System.out.println("  ok     " + name);
        } catch (Throwable error) {
            failures += 1;
            System.out.println("  FAILED " + name);
            error.printStackTrace(System.out);
        }
    }

    /** Leads to the server until it is cut. */
    static class Proxy implements AutoCloseable {
        final ServerSocket listener = new ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
        final List<Socket> open = Collections.synchronizedList(new ArrayList<>());

        Proxy() throws IOException {
            thread(() -> {
                while (true) {
                    Socket inner = listener.accept();
                    Socket outer = new Socket(host, port);
                    open.addAll(Arrays.asList(inner, outer));
                    thread(() -> copy(inner, outer));
                    thread(() -> copy(outer, inner));
                }
            });
        }

        static void thread(Callable<?> work) {
            Thread made = new Thread(() -> {
                try {
                    work.call();
                } catch (Exception closed) {
                    // It was cut.
                }
            });
            made.setDaemon(true);
            made.start();
        }

        static Object copy(Socket from, Socket to) throws IOException {
            try (InputStream in = from.getInputStream(); OutputStream out = to.getOutputStream()) {
                in.transferTo(out);
            }
            return null;
        }

        void cut() throws IOException {
            for (Socket socket : new ArrayList<>(open)) {
                socket.close();
            }
            open.clear();
        }

        @Override
        public void close() throws IOException {
            listener.close();
            cut();
        }
    }

    public static void main(String[] arguments) {
        host = arguments[0];
        port = Integer.parseInt(arguments[1]);
        // The connector's own complaints about connections that are cut.
        Logger.getLogger("").setLevel(Level.OFF);
        check("connects and asks for the version", client -> {
            equal(client.getVersion().toString().startsWith("Tarantool "), true);
        });
        check("a wrong password is refused", client -> {
            try (TarantoolClient<TarantoolTuple, TarantoolResult<TarantoolTuple>> other = connect("tester", "wrong", port, CHECK_MAX_S * 1000)) {
                // It does not say why.
                refused("The client is not connected", () -> take(other.call("echo", 1)));
            }
        });
        check("all operations, spaces and indexes by name", client -> {
            TarantoolSpaceOperations<TarantoolTuple, TarantoolResult<TarantoolTuple>> goods = client.space("goods");
            equal(fields(take(goods.insert(row(1, "nut", 10)))), "[[1, nut, 10]]");
            refused("Duplicate key exists in unique index", () -> take(goods.insert(row(1, "bolt", 10))));
            refused("field", () -> take(goods.insert(row("x", "bolt", 10))));
            equal(fields(take(goods.replace(row(1, "nut", 11)))), "[[1, nut, 11]]");
            equal(fields(take(goods.select(Conditions.indexEquals("name", List.of("nut"))))), "[[1, nut, 11]]");
            equal(fields(take(goods.update(Conditions.indexEquals("primary", List.of(1)), TupleOperations.add("price", 4)))), "[[1, nut, 15]]");
            Conditions first = Conditions.indexEquals("primary", List.of(1)), second = Conditions.indexEquals("primary", List.of(2));
            take(goods.upsert(first, row(1, "other", 1), TupleOperations.add(2, 100)));
            take(goods.upsert(second, row(2, "bolt", 7), TupleOperations.add(2, 100)));
            equal(fields(take(goods.select(Conditions.any()))), "[[1, nut, 115], [2, bolt, 7]]");
            equal(fields(take(goods.delete(second))), "[[2, bolt, 7]]");
            equal(fields(take(goods.delete(second))), "[]");
        });
        check("iterators, limit, offset and cursors", client -> {
            TarantoolSpaceOperations<TarantoolTuple, TarantoolResult<TarantoolTuple>> goods = client.space("goods");
            for (int id = 1; id <= 10; id += 1) {
                take(goods.insert(row(id, "name " + id, id / 3)));
            }
            equal(ids(take(goods.select(Conditions.greaterOrEquals("id", 8)))), "[8, 9, 10]");
            equal(ids(take(goods.select(Conditions.indexLessThan("primary", List.of(3))))), "[2, 1]");
            equal(ids(take(goods.select(Conditions.indexEquals("price", List.of(2))))), "[6, 7, 8]");
            equal(ids(take(goods.select(Conditions.limit(2).withOffset(3)))), "[4, 5]");
            List<Object> all = new ArrayList<>();
            io.tarantool.driver.api.cursor.TarantoolCursor<TarantoolTuple> cursor = goods.cursor(Conditions.any(), 3);
            while (cursor.next()) {
                all.add(cursor.get().getInteger(0));
            }
            equal(all, "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]");
        });
        check("names and rights that are not there are errors", client -> {
            refused("no_such_space", () -> take(client.space("no_such_space").select(Conditions.any())));
            refused("no_such_index", () -> take(client.space("goods").select(Conditions.indexEquals("no_such_index", List.of(1)))));
            refused("secret", () -> take(client.space("secret").insert(row(1))));
        });
        check("calls and eval", client -> {
            equal(take(client.call("sum", 1, 2)), "[3]");
            equal(take(client.call("echo", 1, "two", List.of(3, 4))), "[1, two, [3, 4]]");
            take(client.space("goods").insert(row(1, "nut", 10)));
            equal(take(client.call("find_goods", 1)), "[[1, nut, 10]]");
            equal(take(client.call("stock:describe")), "[true]");
            equal(take(client.eval("return ...", List.of(1, "two"))), "[1, two]");
            refused("something is wrong", () -> take(client.call("fail", "something is wrong")));
            refused("'nobody' is not found", () -> take(client.call("fail_with_code")));
            refused("is not defined", () -> take(client.call("no_such_function")));
            equal(take(client.call("sum", 1, 2)), "[3]");
        });
        check("a thousand requests at once", client -> {
            TarantoolSpaceOperations<TarantoolTuple, TarantoolResult<TarantoolTuple>> goods = client.space("goods");
            List<CompletableFuture<TarantoolResult<TarantoolTuple>>> answers = new ArrayList<>();
            for (int id = 0; id < 1000; id += 1) {
                answers.add(goods.insert(row(id, "name " + id, id)));
            }
            for (int id = 0; id < 1000; id += 1) {
                equal(ids(take(answers.get(id))), "[" + id + "]");
            }
        });
        check("a changed schema is noticed", client -> {
            take(client.space("goods").select(Conditions.any()));
            take(client.call("add_space", "added_java"));
            client.metadata().refresh().get(CHECK_MAX_S, TimeUnit.SECONDS);
            equal(fields(take(client.space("added_java").insert(row(1)))), "[[1]]");
        });
        check("a lost connection is made again", client -> {
            take(client.space("goods").insert(row(1, "nut", 1)));
            // What is sent while the connector has not noticed is not answered: it asks again when the time is over.
            try (Proxy proxy = new Proxy();
                TarantoolClient<TarantoolTuple, TarantoolResult<TarantoolTuple>> plain = connect("tester", PASSWORD, proxy.listener.getLocalPort(), 500);
                TarantoolClient<TarantoolTuple, TarantoolResult<TarantoolTuple>> other =
                    TarantoolClientFactory.configureClient(plain).withRetryingByNumberOfAttempts(100, policy -> policy.withDelay(20)).build()) {
                for (int round = 0; round < 3; round += 1) {
                    equal(fields(take(other.space("goods").select(Conditions.any()))), "[[1, nut, 1]]");
                    proxy.cut();
                }
                equal(take(other.call("sum", 1, 2)), "[3]");
            }
        });
        System.exit(failures == 0 ? 0 : 1);
    }
}
