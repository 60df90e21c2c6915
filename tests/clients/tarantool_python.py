"""The connector of PyPI's `tarantool`: arguments are host and port."""

import socket
import sys
import uuid
from decimal import Decimal

import tarantool
from tarantool.const import ITERATOR_GE, ITERATOR_LT, ITERATOR_REQ
from tarantool.error import DatabaseError, NetworkError, SchemaError

from checks import check, equal, run

HOST, PORT = sys.argv[1], int(sys.argv[2])
USER = {"user": "tester", "password": "secret word"}

DUPLICATE_KEY = 3
ACCESS_DENIED = 42
NO_SUCH_PROCEDURE = 33
LUA_ERROR = 32
NO_SUCH_USER = 45
WRONG_CREDENTIALS = (45, 47)
FIELD_TYPE = 23


def connect(**options):
    """A connection on empty spaces."""
    connection = tarantool.Connection(HOST, PORT, **{**USER, **options})
    guest = tarantool.Connection(HOST, PORT)
    guest.call("clear")
    guest.close()
    return connection


def refused(codes, function, *arguments, **options):
    """The error that a call must end with."""
    try:
        result = function(*arguments, **options)
    except SchemaError:
        raise
    except DatabaseError as error:
        if isinstance(error, NetworkError) and isinstance(error.__cause__, DatabaseError):
            # What went wrong while connecting.
            error = error.__cause__
        codes = codes if isinstance(codes, tuple) else (codes,)
        if error.code not in codes:
            raise AssertionError(f"got error {error.code} {error.message}, expected {codes}") from error
        return error
    raise AssertionError(f"got {result!r}, expected error {codes}")


@check
def connects_and_pings():
    connection = connect()
    assert connection.ping() > 0
    connection.close()


@check
def wrong_password_is_refused():
    refused(WRONG_CREDENTIALS, connect, password="wrong")
    refused(WRONG_CREDENTIALS, connect, user="nobody")


@check
def spaces_and_indexes_are_found_by_name():
    connection = connect()
    space = connection.space("goods")
    space.insert((1, "nut", 10, None))
    equal(list(space.select("nut", index="name")), [[1, "nut", 10, None]])
    try:
        connection.select("no_such_space")
    except SchemaError:
        pass
    else:
        raise AssertionError("a space that is not there is no error")
    try:
        connection.select("goods", 1, index="no_such_index")
    except SchemaError:
        pass
    else:
        raise AssertionError("an index that is not there is no error")


@check
def insert_replace_and_duplicates():
    connection = connect()
    equal(connection.insert("goods", (1, "nut", 10)).data, [[1, "nut", 10]])
    error = refused(DUPLICATE_KEY, connection.insert, "goods", (1, "bolt", 10))
    assert "primary" in error.message, error.message
    error = refused(DUPLICATE_KEY, connection.insert, "goods", (2, "nut", 10))
    assert "name" in error.message, error.message
    equal(connection.replace("goods", (1, "nut", 11, {"size": [1, 2.5, None, True]})).rowcount, 1)
    equal(connection.select("goods", 1).data, [[1, "nut", 11, {"size": [1, 2.5, None, True]}]])
    refused(FIELD_TYPE, connection.insert, "goods", ("x", "y", 1))


@check
def select_by_iterators_limit_and_offset():
    connection = connect()
    for number in range(1, 11):
        connection.insert("goods", (number, f"name {number:02}", number // 3))
    equal([row[0] for row in connection.select("goods").data], list(range(1, 11)))
    equal([row[0] for row in connection.select("goods", 8, iterator=ITERATOR_GE)], [8, 9, 10])
    equal([row[0] for row in connection.select("goods", 3, iterator=ITERATOR_LT)], [2, 1])
    equal([row[0] for row in connection.select("goods", 2, index="price")], [6, 7, 8])
    equal([row[0] for row in connection.select("goods", 2, index="price", iterator=ITERATOR_REQ)], [8, 7, 6])
    equal([row[0] for row in connection.select("goods", limit=2, offset=3)], [4, 5])
    equal(connection.select("goods", 77).data, [])


@check
def update_delete_and_upsert():
    connection = connect()
    connection.insert("goods", (1, "nut", 10, "text"))
    equal(connection.update("goods", 1, [("+", "price", 5), ("=", 3, "new")]).data, [[1, "nut", 15, "new"]])
    equal(connection.update("goods", "nut", [("-", 2, 1)], index="name").data, [[1, "nut", 14, "new"]])
    equal(connection.update("goods", 1, [("#", 3, 1)]).data, [[1, "nut", 14]])
    equal(connection.update("goods", 1, [("!", 3, "last"), (":", 1, 1, 1, "e")]).data, [[1, "net", 14, "last"]])
    equal(connection.update("goods", 77, [("=", 1, "x")]).data, [])
    connection.upsert("goods", (1, "other", 1), [("+", 2, 100)])
    connection.upsert("goods", (2, "bolt", 7), [("+", 2, 100)])
    equal(connection.select("goods").data, [[1, "net", 114, "last"], [2, "bolt", 7]])
    equal(connection.delete("goods", 1).data, [[1, "net", 114, "last"]])
    equal(connection.delete("goods", "bolt", index="name").data, [[2, "bolt", 7]])
    equal(connection.delete("goods", 1).data, [])


@check
def hash_space_with_a_sequence():
    connection = connect()
    first = connection.insert("tickets", (None, "a")).data[0][0]
    second = connection.insert("tickets", (None, "b")).data[0][0]
    equal(second, first + 1)
    equal(connection.select("tickets", second).data, [[second, "b"]])


@check
def values_of_all_kinds_come_back():
    connection = connect()
    values = [None, True, False, 0, -1, 2**63, -(2**63), 2**64 - 1, 1.5, "", "текст", [], {}, [[1], {"a": {"b": 2}}]]
    equal(connection.call("echo", *values).data, values)
    equal(connection.call("echo", "x" * 100_000).data, ["x" * 100_000])
    identifier = uuid.UUID("c6ad95d7-aa48-48de-81b2-7d621374567a")
    for value in (identifier, Decimal("-12.345"), Decimal("0"), Decimal("1E+2")):
        connection.replace("goods", (1, "nut", 1, value))
        equal(connection.select("goods", 1).data[0][3], value)


@check
def calls_return_what_the_function_returns():
    connection = connect()
    equal(connection.call("sum", 1, 2).data, [3])
    equal(connection.call("echo").data, [])
    equal(connection.call("echo", [1, 2], 3).data, [[1, 2], 3])
    connection.insert("goods", (1, "nut", 10))
    equal(connection.call("find_goods", 1).data, [[1, "nut", 10]])
    equal(connection.call("all_goods").data, [[[1, "nut", 10]]])
    equal(connection.call("stock.count", "nut").data, [1])
    equal(connection.call("stock:describe").data, [True])
    old = connect(call_16=True)
    old.insert("goods", (1, "nut", 10))
    equal(old.call("sum", 1, 2).data, [[3]])
    equal(old.call("find_goods", 1).data, [[1, "nut", 10]])
    equal(old.call("all_goods").data, [[1, "nut", 10]])
    equal(old.call("echo", 1, [2, 3]).data, [[1], [2, 3]])


@check
def eval_runs_lua():
    connection = connect()
    equal(connection.eval("return ...", (1, "two")).data, [1, "two"])
    equal(connection.eval("return 1 + 1, {a = 1}").data, [2, {"a": 1}])
    connection.eval("function from_eval(x) return x * 2 end")
    equal(connection.call("from_eval", 21).data, [42])


@check
def errors_keep_their_code_and_text():
    connection = connect()
    error = refused(LUA_ERROR, connection.call, "fail", "something is wrong")
    assert "something is wrong" in error.message, error.message
    refused(NO_SUCH_PROCEDURE, connection.call, "no_such_function")
    error = refused(NO_SUCH_USER, connection.call, "fail_with_code")
    assert "nobody" in error.message, error.message
    refused(LUA_ERROR, connection.eval, "this is no Lua")
    refused(ACCESS_DENIED, connection.call, "box.schema.user.create", "thief")
    # The space is not in the schema that the user sees, or it is and the server refuses.
    try:
        refused(ACCESS_DENIED, connection.select, "secret")
    except SchemaError:
        pass
    guest = tarantool.Connection(HOST, PORT)
    refused((ACCESS_DENIED,), guest.eval, "return 1")
    # After all that the connection is as good as new.
    equal(connection.call("sum", 1, 2).data, [3])


@check
def a_procedure_that_fails_leaves_nothing():
    connection = connect()
    connection.call("insert_pair", (1, "one", 1), (2, "two", 2))
    refused(DUPLICATE_KEY, connection.call, "insert_pair", (3, "three", 3), (2, "two again", 2))
    equal([row[0] for row in connection.select("goods")], [1, 2])


@check
def a_changed_schema_is_noticed():
    connection = connect()
    connection.insert("goods", (1, "nut", 1))
    connect().call("add_space", "added_python")
    equal(connection.insert("added_python", (1,)).data, [[1]])
    equal(connection.select("added_python", 1).data, [[1]])


@check
def reconnects_after_the_connection_is_lost():
    connection = connect(reconnect_max_attempts=5, reconnect_delay=0.01)
    connection.insert("goods", (1, "nut", 1))
    connection._socket.shutdown(socket.SHUT_RDWR)  # pylint: disable=protected-access
    equal(connection.select("goods", 1).data, [[1, "nut", 1]])
    connection.close()
    try:
        tarantool.Connection(HOST, 1, reconnect_max_attempts=1)
    except NetworkError:
        pass
    else:
        raise AssertionError("a port where nobody listens was connected to")


run()
