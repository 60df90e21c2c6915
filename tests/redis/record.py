#!/usr/bin/env python3
"""Commands of Redis' protocol and what the real Redis answers to them.

    record.py --real 127.0.0.1:6379 --seed 1 --count 1000 > answers/1.txt     record
    record.py --real 127.0.0.1:6379 --ours 127.0.0.1:6380 --seed 9            compare two servers
    record.py --real 127.0.0.1:6379 --script scripts.txt > answers/scripts.txt  record what a file says
    record.py --real 127.0.0.1:6379 --rules --seed 1 --count 4000 > answers/rules.txt  record what users may do

With `--script` every line is a script for EVAL, or behind `! ` a command in the shell's quotes (`\\n` ends a line within). Else the commands are random, from one seed, over few keys and values, so that they meet. Recorded files are what `tests/tests/redis.rs` plays. Both servers are
emptied first.

With `--rules` users get random rules by ACL SETUSER, and ACL DRYRUN tells whether they may run random commands. `--password admin:secret` logs in at our
server, as who may change users. Left out is what differs on purpose: what is told of commands whose keys cannot be found, since they fail anyway, and
GETUSER, which shows rules in other words.
"""

import argparse
import itertools
import random
import shlex
import socket
import sys


class Connection:
    """A connection that gives answers as they came."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)))
        self.file = self.socket.makefile("rb")

    def send(self, *parts):
        encoded = [part.encode("latin-1") for part in parts]
        head = b"*%d\r\n" % len(encoded)
        self.socket.sendall(head + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in encoded))
        return self.answer()

    def answer(self):
        line = self.file.readline()
        if not line:
            raise SystemExit("the server has closed the connection")
        kind, count = line[:1], line[1:-2]
        if kind == b"$" and int(count) >= 0:
            line += self.file.read(int(count) + 2)
        elif kind == b"*" and int(count) > 0:
            line += b"".join(self.answer() for _ in range(int(count)))
        return line


def shown(data):
    """Printable, without spaces; ends of lines are bars."""
    text = b"".join(bytes([byte]) if 0x21 <= byte <= 0x7E and byte not in b"%|" else b"%%%02X" % byte for byte in data)
    return text.decode().replace("%0D%0A", "|") or "%"


# Capital letters stand for one of these.
CLASSES = {
    "K": ["a", "b", "c", "d", "e"],
    "V": ["1", "2", "-5", "abc", "", "3.5", "hello world", "10", "foo", "x" * 70, "9223372036854775807", "nan", "inf", "\xff\x00\x01"],
    "M": ["m1", "m2", "m3", "m4", "m5", "m6"],
    "I": ["0", "1", "-1", "2", "-2", "3", "5", "-10", "100", "x", "1.5"],
    "N": ["1", "2", "3", "0", "-1", "-2", "5"],
    "S": ["1", "2", "-3", "1.5", "inf", "-inf", "(1", "(2.5", "x", "0", "3.14159"],
    "L": ["-", "+", "[m1", "(m2", "[m4", "(m5", "[zz", "x"],
    "X": ["1-1", "2-1", "2", "3-0", "5", "7-3", "9", "12-0", "0", "0-0", "x", "4-*", "20-1", "21-1", "22", "30"],
    "B": ["-", "+", "(2-1", "1", "5", "9-9", "20", "(x", "0"],
    "T": ["st", "st2"],
    "P": ["pf", "pf2"],
    "Y": ["geo", "geo2"],
    "G": ["g1", "g2"],
    "C": ["c1", "c2"],
    "F": ["1", "2.5", "-3", "0", "1e3", "inf", "abc", "0.1"],
}

# A command a line; of parts with slashes between them one is taken. A mark says that the answer has no order.
COMMANDS = """
set K V
set K V nx/xx/get/keepttl
set K V ex 100/0/-1/x
set K V nx get
get K
setnx K V
setex K 100/0/a V
psetex K 100000 V
getset K V
getdel K
getex K
getex K persist
getex K ex/foo 100
getex K px 0
mget K K zz
mset K V K V
mset K V K
msetnx K V K V
append K V
strlen K
incr K
decr K
incrby K I
decrby K I
incrbyfloat K 0.1/1.5/-2/3/abc
getrange K I I
setrange K 0/1/5/-1 V
setbit K 0/7/9/100/-1 0/1/2
getbit K 0/1/7/9/-1
bitcount K
bitcount K I I
bitcount K N N bit/byte
bitpos K 0/1/2
bitpos K 0/1 I
bitpos K 0/1 I I bit/byte
bitop and/or/xor/not K K K
bitop not K K
bitfield K get u8/i5/u64/i64 0/#1/3
bitfield K overflow wrap/sat/fail incrby u4/i8 0/5 1/100/-7
bitfield K set u8 0 1/255/300/-1 get i8 0
lcs K K
lcs K K len
lcs K K idx withmatchlen
del K
del K K
exists K K K
type K
expire K 1000/-1/x
expire K 1000/-1 nx/xx/gt/lt
expire K 1000/x nx gt
ttl K
persist K
rename K K
renamenx K K
copy K K
copy K K replace
touch K K
unlink K
hset K M V
hset K M V M V
hset K M
hget K M
hdel K M M
hmget K M M
~ hgetall K
hlen K
hexists K M
hincrby K M I
hincrbyfloat K M F
hsetnx K M V
hstrlen K M
~ hkeys K
~ hvals K
hmset K M V
lpush K V V
rpush K V V
lpushx K V
rpushx K V
lpop K
rpop K
lpop K N
rpop K N
llen K
lindex K I
lset K I V
lrange K I I
ltrim K I I
linsert K before/after/x V V
lrem K N V
lpos K V
lpos K V rank N count 0/1/2/-1
rpoplpush K K
lmove K K left/right left/right/x
lmpop 1/2/0 K K left
lmpop 1 K right count N
blpop K K 0.01
brpoplpush K K 0.01
bzpopmin K 0.01
sadd K M M M
srem K M M
scard K
sismember K M
smismember K M M
~ smembers K
smove K K M
~ sunion K K
~ sinter K K
~ sdiff K K
sunionstore K K K
sinterstore K K K
sdiffstore K K K
sintercard 2 K K
sintercard 2 K K limit N
zadd K F M
zadd K F M F M
zadd K nx/xx/gt/lt/ch/incr F M
zadd K nx/xx/gt/lt/ch/incr nx/xx/gt/lt/ch/incr F M F M
zincrby K F M
zscore K M
zmscore K M M
zcard K
zrem K M M
zrange K I I withscores
zrange K S S byscore
zrange K S S byscore rev limit N N
zrevrange K I I
zrangebyscore K S S withscores limit N N
zrevrangebyscore K S S
zcount K S S
zrank K M
zrevrank K M
zremrangebyrank K I I
zremrangebyscore K S S
zpopmin K
zpopmax K N
zmpop 1 K min/max/x
zunion 2 K K withscores
zinter 2 K K weights F F
zdiff 2 K K withscores
zunionstore K 2 K K aggregate min/max/sum/x
zinterstore K 2 K K weights 2 3
zdiffstore K 2 K K
zrangestore K K 0 -1
zintercard 2 K K
zadd lex 0 M 0 M
zrange lex L L bylex
zrangebylex lex L L
zrevrangebylex lex L L limit N N
zlexcount lex L L
zremrangebylex lex L L
xadd T X m1 V
xadd T X m1 V m2 V
xadd T nomkstream X m1 V
xadd T maxlen =/~ N X m1 V
xadd T minid X X m1 V
xadd T X m1
xlen T
xlen K
xrange T B B
xrange T B B count N
xrevrange T B B
xrevrange T B B count N
xdel T X X
xtrim T maxlen N
xtrim T minid X
xtrim T maxlen 1 limit 2
xread count 2 streams T X
xread streams T T X X
xread streams T $
xread streams T
xsetid T X
xgroup create T G X/$
xgroup create T G X mkstream
xgroup setid T G X
xgroup destroy T G
xgroup createconsumer T G C
xgroup delconsumer T G C
xreadgroup group G C count N streams T >
xreadgroup group G C streams T > 
xreadgroup group G C noack streams T >
xreadgroup group G C streams T X
xack T G X X
xpending T G
xclaim T G C 0 X X justid
xclaim T G C 0 X X
xclaim T G C 0 X force justid
xclaim T G C 100000 X
xautoclaim T G C 0 0/X
xautoclaim T G C 0 0 count 1 justid
xinfo stream T
xinfo groups T
del T
copy T T replace
type T
pfadd P M M
pfadd P V
pfadd P
pfcount P P
pfmerge P P
geoadd Y 13.361389/15.087269/-0.5/181 38.115556/37.502669/10 M
geoadd Y nx/xx/ch 12.1 40.2 M 11 41 M
geopos Y M M
geodist Y M M
geodist Y M M km/m/ft/mi/x
geohash Y M M
georadius Y 15 37 200/1000/-1/x km
georadius Y 15 37 2000 km withdist withcoord asc
georadiusbymember Y M 500 km asc/desc
geosearch Y fromlonlat 14 38 byradius 900 km asc/desc withhash
geosearch Y frommember M bybox 800 900 km count N
geosearchstore Y Y fromlonlat 14 38 byradius 900 km
zrange Y 0 -1 withscores
dbsize
~ keys *
nosuch K
get
sort K
sort K alpha desc
sort K limit N N alpha store K
"""


def commands(seed, without):
    """Endless random commands, and whether the answer has no order."""
    rnd = random.Random(seed)
    lines = [line for line in COMMANDS.split("\n")[1:-1] if line not in without]
    is_open = False
    while True:
        if rnd.random() < 0.02:
            yield False, ["exec" if is_open else "multi"]
            is_open = not is_open
            continue
        parts = rnd.choice(lines).split(" ")
        has_no_order = parts[0] == "~"
        if has_no_order and is_open:
            continue
        yield has_no_order, [rnd.choice(CLASSES.get(part) or part.split("/")) for part in parts[has_no_order:]]


RULED = """
append K v|bitcount K|bitfield K|bitfield K get u8 0|bitfield K set u8 0 1|bitfield K overflow wrap get u8 0|bitfield K get u8|bitfield_ro K get u8 0
bitop and K K K|bitpos K 1|blmove K K left right 0|blmpop 0 2 K K left|blpop K K 0|brpop K 0|brpoplpush K K 0|bzmpop 0 2 K K min|bzpopmin K K 0
bzpopmax K 0|copy K K|copy K K db 1 replace|decr K|decrby K 1|del K K|dump K|eval x 2 K K|evalsha x 1 K v|eval_ro x 2 K K|evalsha_ro x 1 K|fcall x 2 K K
fcall_ro x 1 K|exists K K|expire K 1|expireat K 1|expiretime K|geoadd K 1 1 x|geodist K a b|geohash K a|geopos K a|georadius K 1 1 1 km
georadius K 1 1 1 km store K|georadius K 1 1 1 km store K storedist K|georadius K 1 1 1 km storedist K store K|georadius K 1 1 1 km count 1 store K
georadius_ro K 1 1 1 km|georadiusbymember K x 1 km|georadiusbymember K store 1 km storedist K store K|georadiusbymember_ro K x 1 km
geosearch K frommember x byradius 1 km|geosearchstore K K frommember x byradius 1 km|get K|getbit K 1|getdel K|getex K persist|getrange K 0 1|getset K v
hdel K f|hexists K f|hget K f|hgetall K|hincrby K f 1|hincrbyfloat K f 1|hkeys K|hlen K|hmget K f|hmset K f v|hrandfield K|hscan K 0|hset K f v|hsetnx K f v
hstrlen K f|hvals K|incr K|incrby K 1|incrbyfloat K 1|lcs K K|lindex K 0|linsert K before a b|llen K|lmove K K left left|lmpop 2 K K left|lpop K|lpos K a
lpush K a|lpushx K a|lrange K 0 1|lrem K 0 a|lset K 0 a|ltrim K 0 1|memory usage K|memory doctor|mget K K K|migrate h 1 K 0 1
migrate h 1 % 0 1 keys K K|migrate h 1 % 0 1 auth keys keys K|migrate h 1 % 0 1 auth2 keys keys keys K K|migrate h 1 K 0 1 auth keys|move K 1|mset K v K v
msetnx K v K v|object encoding K|object help|object freq K|persist K|pexpire K 1|pexpireat K 1|pexpiretime K|pfadd K a|pfcount K K|pfmerge K K K
psetex K 1 v|pttl K|publish C m|spublish C m|subscribe C C|ssubscribe C|psubscribe P|punsubscribe P|unsubscribe C|pubsub channels|pubsub numsub C
rename K K|renamenx K K|restore K 0 v|restore-asking K 0 v|rpop K|rpoplpush K K|rpush K a|rpushx K a|sadd K a|scard K|sdiff K K|sdiffstore K K K|set K v
set K v get|set K v ex 1|setbit K 0 1|setex K 1 v|setnx K v|setrange K 0 v|sinter K K|sintercard 2 K K|sinterstore K K K|sismember K a|smembers K
smismember K a|smove K K a|sort K|sort K store K|sort K by store|sort K get store limit 0 store store K|sort K store K by store desc|sort K store K store K
sort_ro K|spop K|srandmember K|srem K a|sscan K 0|strlen K|substr K 0 1|sunion K K|sunionstore K K K|touch K K|ttl K|type K|unlink K K|watch K K
xack K g 1-1|xadd K * f v|xautoclaim K g c 0 0|xclaim K g c 0 1-1|xdel K 1-1|xgroup create K g 0|xgroup createconsumer K g c|xgroup destroy K g|xgroup help
xinfo groups K|xinfo stream K|xinfo help|xlen K|xpending K g|xrange K - +|xread streams K 0|xread count 1 block 1 streams K K 0 0
xreadgroup group g c streams K 0|xreadgroup group streams c streams K 0|xreadgroup group streams streams streams K K 0 0
xreadgroup group g c count 1 noack streams K K 0 0|xrevrange K + -|xsetid K 1-1|xtrim K maxlen 1|zadd K 1 a|zcard K|zcount K 0 1|zdiff 2 K K
zdiffstore K 2 K K|zincrby K 1 a|zinter 2 K K|zintercard 2 K K|zinterstore K 1 K|zlexcount K - +|zmpop 2 K K min|zmscore K a|zpopmax K|zpopmin K
zrandmember K|zrange K 0 1|zrangebylex K - +|zrangebyscore K 0 1|zrangestore K K 0 1|zrank K a|zrem K a|zremrangebylex K - +|zremrangebyrank K 0 1
zremrangebyscore K 0 1|zrevrange K 0 1|zrevrangebylex K + -|zrevrangebyscore K 1 0|zrevrank K a|zscan K 0|zscore K a|zunion 2 K K|zunionstore K 2 K K
acl whoami|acl list|acl setuser x|client id|client list|client kill x|config get x|config set a b|debug object K|select 0|select 1|keys *|scan 0|randomkey
dbsize|flushall|flushdb|swapdb 0 1|ping|echo x|quit|reset|auth x|hello|multi|exec|discard|unwatch|info|command|command count|command getkeys get K|monitor
slowlog get|latency reset|role|save|bgsave|shutdown|script load x|script exists x|function load x|function list|time|lolwut|wait 0 0|lastsave|cluster info
readonly|replicaof a b|sync|psync a b|failover|module list|module load x|pfselftest|nothing|get|set K|CLIENT ID|Get K|SORT K STORE K
"""

CATEGORIES = """keyspace read write set sortedset list hash string bitmap hyperloglog geo stream pubsub admin fast slow blocking dangerous connection
transaction scripting""".split()
# Patterns; what stands in the place of K, C and P.
GLOBS = ["*", "r*", "w*", "b?", "[a-c]1", "[^x]*", "x\\*", "s1", "asc", "*1", "store", "", "[", "[a", "[^", "[]1", "\\", "?*?", "[\\]]", "[z-a]1"]
# Some of them look like options, those apart that Redis itself takes for some where they are none.
KEYS = ["r1", "w1", "b1", "x1", "s1", "desc", "streams"]
CHANNELS = ["c1", "c2", "news", "x"]
PATTERNS = ["c*", "c1", "*", "news"]
WORDS = """allkeys resetkeys allchannels resetchannels allcommands nocommands +@all -@all ~* &* ALLKEYS reset on off clearselectors foo + - % & ~ ( () )
+select|0 +select|1 -select|0 +config|get +config|get|x -config|get|x +get| +config| +config|nope +| +select|0|1 +SELECT|0 +debug|object +GET +@ -@foo
+ping|x +memory|usage +@all|x +module -module +pfselftest""".split()


RULED = RULED.strip().replace("\n", "|").split("|")
NAMES = sorted({command.split(" ")[0].lower() for command in RULED} - {"nothing"})
NAMES += ["config|get", "client|id", "client|list", "acl|list", "xgroup|create"]


def rule(rnd):
    kind = rnd.random()
    if kind < 0.18:
        return "~" + rnd.choice(GLOBS)
    if kind < 0.34:
        return "%" + rnd.choice(["R~", "W~", "RW~", "r~", "w~", "WR~", "R", "RR~", "~", "X~", "RWR~"]) + rnd.choice(GLOBS)
    if kind < 0.44:
        return "&" + rnd.choice(PATTERNS + GLOBS)
    if kind < 0.64:
        return rnd.choice("++-") + "@" + rnd.choice(CATEGORIES + ["all", "READ"])
    if kind < 0.84:
        return rnd.choice("++-") + rnd.choice(NAMES)
    return rnd.choice(WORDS)


def ruled(seed):
    """Users, and what they may do."""
    rnd = random.Random(seed)
    chosen = {"K": KEYS, "C": CHANNELS, "P": PATTERNS, "%": [""]}
    while True:
        yield False, ["acl", "deluser", "u"]
        yield False, ["acl", "setuser", "u"]
        # Much is let through at first, or nearly all refusals would be of the command.
        begin = rnd.choice([[], ["+@all"], ["+@all", "%R~r*", "%W~w*", "~b*", "&c*"]])
        for _ in range(rnd.randint(1, 2)):
            words = begin + [rule(rnd) for _ in range(rnd.randint(1, 3))]
            if rnd.random() < 0.2:
                words.append("(" + " ".join(rule(rnd) for _ in range(rnd.randint(1, 3))) + ")")
            yield False, ["acl", "setuser", "u", *words]
            begin = []
        for command in rnd.sample(RULED, 25):
            yield False, ["acl", "dryrun", "u", *(rnd.choice(chosen.get(word) or [word]) for word in command.split(" "))]


def written(path):
    """The commands of a file."""
    for line in open(path, encoding="latin-1"):
        line = line.rstrip("\n")
        if line.startswith("! "):
            yield False, [part.replace("\\n", "\n") for part in shlex.split(line[2:])]
        elif line:
            yield False, ["eval", line, "0"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", required=True, help="address of the real Redis")
    parser.add_argument("--ours", help="address of a server to compare it with")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--without", nargs="*", default=[], help="commands to leave out, as they stand in this file")
    parser.add_argument("--script", help="file of commands, in the place of random ones")
    parser.add_argument("--rules", action="store_true", help="users and what they may do, in the place of random commands")
    parser.add_argument("--password", help="user:password at our server")
    options = parser.parse_args()
    servers = [Connection(address) for address in (options.real, options.ours) if address]
    if options.password:
        servers[-1].send("auth", *options.password.split(":"))
    for server in servers:
        server.send("flushall")
        if options.rules:
            server.send("acl", "deluser", "u")
    differing = 0
    if options.script:
        chosen = written(options.script)
    elif options.rules:
        chosen = itertools.islice(ruled(options.seed), options.count)
    else:
        chosen = itertools.islice(commands(options.seed, options.without), options.count)
    done = 0
    for has_no_order, command in chosen:
        done += 1
        answers = [shown(server.send(*command)) for server in servers]
        text = " ".join(shown(part.encode("latin-1")) for part in command)
        if not options.ours:
            print("~" if has_no_order else ">", text)
            print("<", answers[0])
            continue
        pieces = [sorted(answer.split("|")) if has_no_order else answer for answer in answers]
        if pieces[0] != pieces[1]:
            differing += 1
            print(text, *answers, sep="\n    ")
    if options.ours:
        print(f"{done} commands, {differing} answers differ", file=sys.stderr)
        sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
