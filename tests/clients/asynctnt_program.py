"""The connector of PyPI's `asynctnt`: arguments are host and port."""

import asyncio
import sys

import asynctnt
from asynctnt.exceptions import TarantoolDatabaseError, TarantoolNotConnectedError, TarantoolSchemaError

from checks import check, equal, run

HOST, PORT = sys.argv[1], int(sys.argv[2])

DUPLICATE_KEY = 3
TRANSACTION_CONFLICT = 97
LUA_ERROR = 32
NO_SUCH_PROCEDURE = 33
WRONG_CREDENTIALS = (45, 47)


class Connected:
    """A connection on empty spaces, closed at the end."""

    def __init__(self, **options):
        self.options = {"username": "tester", "password": "secret word", "reconnect_timeout": 0, **options}

    async def __aenter__(self):
        guest = asynctnt.Connection(host=HOST, port=PORT, reconnect_timeout=0)
        await guest.connect()
        await guest.call("clear")
        await guest.disconnect()
        self.connection = asynctnt.Connection(host=HOST, port=PORT, **self.options)
        await self.connection.connect()
        return self.connection

    async def __aexit__(self, *_):
        await self.connection.disconnect()


def plain(response):
    """Rows as lists."""
    return [list(row) if isinstance(row, (tuple, list, asynctnt.TarantoolTuple)) else row for row in response]


async def refused(codes, awaitable):
    """The error that a request must end with."""
    try:
        result = await awaitable
    except TarantoolDatabaseError as error:
        if error.code not in codes:
            raise AssertionError(f"got error {error.code} {error.message}, expected {codes}") from error
        return error
    raise AssertionError(f"got {result!r}, expected error {codes}")


@check
async def connects_and_pings():
    async with Connected() as connection:
        await connection.ping()
        equal(connection.is_connected, True)
        assert connection.version[0] >= 2, connection.version


@check
async def wrong_password_is_refused():
    connection = asynctnt.Connection(
        host=HOST, port=PORT, username="tester", password="wrong", reconnect_timeout=0, auto_refetch_schema=False
    )
    await refused(WRONG_CREDENTIALS, connection.connect())


@check
async def rows_have_fields_by_name():
    async with Connected() as connection:
        await connection.insert("goods", [1, "nut", 10, None])
        row = (await connection.select("goods", [1]))[0]
        equal((row["id"], row["name"], row["price"]), (1, "nut", 10))
        equal(plain(await connection.select("goods", ["nut"], index="name")), [[1, "nut", 10, None]])
        await connection.insert("goods", {"id": 2, "name": "bolt", "price": 20})
        equal(plain(await connection.select("goods", {"id": 2})), [[2, "bolt", 20, None]])


@check
async def names_that_are_not_there_are_errors():
    async with Connected() as connection:
        for request in (
            lambda: connection.select("no_such_space"),
            lambda: connection.select("goods", [1], index="no_such_index"),
        ):
            try:
                await request()
            except TarantoolSchemaError:
                continue
            raise AssertionError("no error")


@check
async def all_operations():
    async with Connected() as connection:
        equal(plain(await connection.insert("goods", [1, "nut", 10])), [[1, "nut", 10]])
        await refused((DUPLICATE_KEY,), connection.insert("goods", [1, "bolt", 10]))
        equal(plain(await connection.replace("goods", [1, "nut", 11])), [[1, "nut", 11]])
        equal(plain(await connection.update("goods", [1], [["+", "price", 4], ["=", 3, "x"]])), [[1, "nut", 15, "x"]])
        equal(plain(await connection.update("goods", ["nut"], [["-", 2, 1]], index="name")), [[1, "nut", 14, "x"]])
        await connection.upsert("goods", [1, "other", 1], [["+", 2, 100]])
        await connection.upsert("goods", [2, "bolt", 7], [["+", 2, 100]])
        equal(plain(await connection.select("goods")), [[1, "nut", 114, "x"], [2, "bolt", 7]])
        equal(plain(await connection.delete("goods", [2])), [[2, "bolt", 7]])
        equal(plain(await connection.delete("goods", [2])), [])


@check
async def iterators_limits_and_offsets():
    async with Connected() as connection:
        for number in range(1, 11):
            await connection.insert("goods", [number, f"name {number:02}", number // 3])
        ids = lambda rows: [row[0] for row in rows]
        equal(ids(await connection.select("goods", [8], iterator="GE")), [8, 9, 10])
        equal(ids(await connection.select("goods", [3], iterator=asynctnt.Iterator.LT)), [2, 1])
        equal(ids(await connection.select("goods", [2], index="price")), [6, 7, 8])
        equal(ids(await connection.select("goods", limit=2, offset=3)), [4, 5])


@check
async def thousands_of_requests_at_once():
    async with Connected() as connection:
        rows = [connection.insert("goods", [number, f"name {number}", number]) for number in range(2000)]
        await asyncio.gather(*rows)
        answers = await asyncio.gather(*(connection.select("goods", [number]) for number in range(2000)))
        equal([answer[0][0] for answer in answers], list(range(2000)))
        mixed = await asyncio.gather(
            *(connection.call("sum", [number, 1]) if number % 2 else connection.ping() for number in range(2000))
        )
        equal([mixed[number][0] for number in range(1, 2000, 2)], list(range(2, 2001, 2)))


@check
async def calls_and_eval():
    async with Connected() as connection:
        equal(list(await connection.call("echo", [1, "two", [3], {"four": 5}])), [1, "two", [3], {"four": 5}])
        equal(plain(await connection.call16("echo", [1, [2, 3]])), [[1], [2, 3]])
        equal(list(await connection.eval("return ...", [1, 2])), [1, 2])
        error = await refused((LUA_ERROR,), connection.call("fail", ["something is wrong"]))
        assert "something is wrong" in error.message, error.message
        await refused((NO_SUCH_PROCEDURE,), connection.call("no_such_function"))


def has_streams(connection):
    """Servers before 2.10 have none."""
    return connection.features is not None and connection.features.streams


@check
async def a_stream_commits_rolls_back_and_is_nobody_elses_until_then():
    async with Connected() as connection:
        if not has_streams(connection):
            return
        for commits in (False, True):
            stream = connection.stream()
            await stream.begin()
            await stream.insert("goods", [1, "nut", 1])
            await refused((DUPLICATE_KEY,), stream.insert("goods", [1, "bolt", 1]))
            equal(plain(await stream.select("goods")), [[1, "nut", 1]])
            equal(plain(await connection.select("goods")), [])
            if commits:
                await stream.commit()
                equal(plain(await connection.select("goods")), [[1, "nut", 1]])
            else:
                await stream.rollback()
                equal(plain(await connection.select("goods")), [])


@check
async def of_two_streams_the_first_to_commit_wins():
    async with Connected() as connection:
        if not has_streams(connection):
            return
        await connection.insert("goods", [1, "nut", 1])
        streams = [connection.stream(), connection.stream()]
        for stream in streams:
            await stream.begin()
            await stream.update("goods", [1], [["+", 2, 1]])
        await streams[0].commit()
        await refused((TRANSACTION_CONFLICT,), streams[1].commit())
        equal(plain(await connection.select("goods")), [[1, "nut", 2]])


@check
async def many_streams_beside_each_other_keep_the_sum():
    async with Connected() as connection:
        if not has_streams(connection):
            return
        for number in range(4):
            await connection.insert("goods", [number, f"name {number}", 100])

        async def move(source, target):
            stream = connection.stream()
            await stream.begin()
            try:
                await stream.update("goods", [source], [["-", 2, 1]])
                await stream.update("goods", [target], [["+", 2, 1]])
                await stream.commit()
            except TarantoolDatabaseError as error:
                equal(error.code, TRANSACTION_CONFLICT)
                await stream.rollback()

        await asyncio.gather(*(move(number % 4, (number + 1) % 4) for number in range(200)))
        equal(sum(row[2] for row in await connection.select("goods")), 400)


@check
async def what_a_procedure_pushes_comes_before_its_result():
    async with Connected() as connection:
        future = connection.eval("for i = 1, 3 do box.session.push(i) end return 'end'", push_subscribe=True)
        equal([pushed[0] async for pushed in asynctnt.PushIterator(future)], [1, 2, 3])
        equal(list(await future), ["end"])


@check
async def an_error_tells_its_kind_and_its_cause():
    async with Connected() as connection:
        error = await refused((5,), connection.eval("box.error({code = 5, reason = 'A', type = 'B'})"))
        if has_streams(connection):
            frame = error.error.trace[0]
            equal((frame.error_type, frame.message, frame.fields), ("CustomError", "A", {"custom_type": "B"}))


@check
async def a_changed_schema_is_noticed():
    async with Connected() as connection:
        before = connection.schema_id
        await connection.call("add_space", ["added_async"])
        await connection.refetch_schema()
        assert connection.schema_id > before, (connection.schema_id, before)
        equal(plain(await connection.insert("added_async", [1])), [[1]])


@check
async def a_lost_connection_is_made_again():
    async with Connected(reconnect_timeout=0.01) as connection:
        await connection.insert("goods", [1, "nut", 1])
        connection._transport.abort()  # pylint: disable=protected-access
        for _ in range(1000):
            try:
                equal(plain(await connection.select("goods", [1])), [[1, "nut", 1]])
                break
            except (TarantoolNotConnectedError, TarantoolSchemaError):
                await asyncio.sleep(0.01)
        else:
            raise AssertionError("not connected again")


run()
