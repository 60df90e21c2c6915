#!/usr/bin/env python3
"""redis-py and rq against a server that speaks Redis' protocol: `redis_python.py HOST PORT`. The same passes against Redis 7."""

import sys
import threading
import time

import redis


def types(r):
    assert r.set("text", "välue", ex=100, nx=True) and not r.set("text", "x", nx=True)
    assert r.get("text") == "välue".encode() and 0 < r.ttl("text") <= 100
    assert r.incrby("n", 5) == 5 and r.incrbyfloat("f", 1.5) == 1.5 and r.append("text", "!") > 0
    assert r.setbit("bits", 7, 1) == 0 and r.bitcount("bits") == 1 and r.getrange("bits", 0, 0) == b"\x01"
    assert r.hset("h", mapping={"a": 1, "b": "two", "c": b"\xff\0"}) == 3
    assert r.hgetall("h") == {b"a": b"1", b"b": b"two", b"c": b"\xff\0"} and r.hincrby("h", "a", 4) == 5
    assert r.rpush("l", *range(10)) == 10 and r.lrange("l", 2, 4) == [b"2", b"3", b"4"] and r.lpos("l", 7) == 7
    assert r.lmove("l", "l2", "LEFT", "RIGHT") == b"0" and r.lpop("l", 2) == [b"1", b"2"]
    assert r.sadd("s1", "a", "b", "c") == 3 and r.sadd("s2", "b", "c", "d") == 3
    assert r.sinter("s1", "s2") == {b"b", b"c"} and r.sdiffstore("s3", "s1", "s2") == 1
    assert r.zadd("z", {"one": 1, "two": 2, "three": 3.5}) == 3 and r.zincrby("z", 2, "one") == 3
    assert r.zrange("z", 0, -1, withscores=True) == [(b"two", 2.0), (b"one", 3.0), (b"three", 3.5)]
    assert r.zrangebyscore("z", "(2", "+inf") == [b"one", b"three"] and r.zrank("z", "three") == 2
    assert r.geoadd("g", (13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania")) == 2
    assert 166 < r.geodist("g", "Palermo", "Catania", unit="km") < 167
    assert r.pfadd("p", *range(1000)) == 1 and 950 < r.pfcount("p") < 1050
    first = r.xadd("x", {"a": 1})
    assert r.xgroup_create("x", "readers", 0) and r.xlen("x") == 1
    assert r.xreadgroup("readers", "me", {"x": ">"}) == [[b"x", [(first, {b"a": b"1"})]]]
    assert r.xpending("x", "readers")["pending"] == 1 and r.xack("x", "readers", first) == 1
    assert sorted(r.scan_iter("s?", count=2)) == [b"s1", b"s2", b"s3"] and r.type("z") == b"zset"
    assert r.expire("h", 100) and r.persist("h") and r.rename("h", "h2") and r.exists("h", "h2") == 1
    dumped = r.dump("z")
    assert r.restore("z2", 0, dumped) and r.zscore("z2", "two") == 2
    try:
        r.lpush("text", 1)
        raise AssertionError("it is no list")
    except redis.ResponseError as error:
        assert str(error).startswith("WRONGTYPE")


def transactions(r):
    with r.pipeline() as pipe:
        assert pipe.set("t", 1).incr("t").get("t").execute() == [True, 2, b"2"]
    other = redis.Redis(connection_pool=r.connection_pool)
    with r.pipeline() as pipe:
        pipe.watch("t")
        other.set("t", 10)
        pipe.multi()
        pipe.incr("t")
        try:
            pipe.execute()
            raise AssertionError("somebody has changed it")
        except redis.WatchError:
            pass
    counter = lambda pipe: (pipe.get("t"), pipe.multi(), pipe.incr("t"))
    threads = [threading.Thread(target=lambda: [r.transaction(counter, "t") for _ in range(25)]) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert r.get("t") == b"110"
    with r.pipeline(transaction=False) as pipe:
        for number in range(3000):
            pipe.set(f"many:{number}", number)
        assert all(pipe.execute())
    assert r.mget(f"many:{number}" for number in range(3000)) == [str(number).encode() for number in range(3000)]
    with r.lock("lock", timeout=10) as lock:
        assert lock.owned() and not r.lock("lock").acquire(blocking=False)


def scripts(r):
    script = r.register_script("redis.call('incrby', KEYS[1], ARGV[1]) return {redis.call('get', KEYS[1]), cjson.encode({a = 1})}")
    assert script(keys=["n"], args=[7]) == [b"12", b'{"a":1}']
    r.script_flush()
    assert script(keys=["n"], args=[1])[0] == b"13"
    try:
        r.eval("return redis.error_reply('MY own')", 0)
        raise AssertionError("it is an error")
    except redis.ResponseError as error:
        assert str(error) == "MY own"


def messages(r):
    pubsub = r.pubsub()
    pubsub.subscribe("news")
    pubsub.psubscribe("new*")
    assert [pubsub.get_message(timeout=5)["type"] for _ in range(2)] == ["subscribe", "psubscribe"]
    assert r.publish("news", "hello") == 2
    assert [pubsub.get_message(timeout=5)["data"] for _ in range(2)] == [b"hello", b"hello"]
    pubsub.close()


def blocking(r):
    threading.Timer(0.2, lambda: r.rpush("queue", "job")).start()
    assert r.blpop(["empty", "queue"], timeout=10) == (b"queue", b"job")
    began = time.monotonic()
    assert r.brpop("empty", timeout=1) is None and time.monotonic() - began >= 0.9
    threading.Timer(0.2, lambda: r.zadd("zq", {"m": 1})).start()
    assert r.bzpopmin("zq", timeout=10) == (b"zq", b"m", 1.0)
    threading.Timer(0.2, lambda: r.xadd("xq", {"k": "v"})).start()
    assert r.xread({"xq": "$"}, block=10000)[0][1][0][1] == {b"k": b"v"}


def reconnects(host, port):
    r = redis.Redis(host, port, retry_on_error=[redis.ConnectionError], retry=redis.retry.Retry(redis.backoff.NoBackoff(), 3))
    other = redis.Redis(host, port)
    assert r.set("r", 1)
    other.client_kill_filter(_id=r.client_id(), skipme=False)
    assert r.get("r") == b"1"
    assert redis.Redis(host, port, protocol=3).hset("h3", "a", 1) == 1
    assert redis.Redis(host, port, protocol=3).hgetall("h3") == {b"a": b"1"}
    assert redis.Redis(host, port, db=5).get("r") is None and redis.Redis(host, port).client_setname("me")


def jobs(host, port):
    try:
        from rq import Queue, SimpleWorker
    except ImportError as reason:
        print(f"  SKIPPED: rq: {reason}")
        return
    r = redis.Redis(host, port)
    queue = Queue("work", connection=r)
    done = [queue.enqueue("operator.add", 2, number) for number in range(5)]
    failing = queue.enqueue("operator.truediv", 1, 0)
    assert SimpleWorker([queue], connection=r).work(burst=True, logging_level="ERROR")
    assert [job.return_value() for job in done] == [2, 3, 4, 5, 6] and failing.get_status(refresh=True) == "failed"
    print("  rq: jobs are done")


def main():
    host, port = sys.argv[1], int(sys.argv[2])
    r = redis.Redis(host, port)
    r.flushall()
    for part in (types, transactions, scripts, messages, blocking):
        part(r)
        print(f"  redis-py: {part.__name__}")
    reconnects(host, port)
    jobs(host, port)
    print("  redis-py: reconnects")


main()
