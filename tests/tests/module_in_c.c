/* What tests/tests/modules_in_c.rs loads: a module as rocks have them, over the functions that the binary exports. */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* As lua.h, lauxlib.h and module.h declare them. */
typedef struct lua_State lua_State;
typedef int (*lua_CFunction)(lua_State *);
typedef struct box_tuple box_tuple_t;
typedef struct box_error box_error_t;
typedef struct box_iterator box_iterator_t;
typedef struct box_tuple_iterator box_tuple_iterator_t;
struct fiber;
struct fiber_cond;
extern void lua_pushinteger(lua_State *, ptrdiff_t), lua_pushnumber(lua_State *, double), lua_pushstring(lua_State *, const char *);
extern void lua_pushlstring(lua_State *, const char *, size_t), lua_pushvalue(lua_State *, int), lua_createtable(lua_State *, int, int);
extern void lua_setfield(lua_State *, int, const char *), lua_pushcclosure(lua_State *, lua_CFunction, int), lua_settop(lua_State *, int);
extern void lua_pushnil(lua_State *), lua_pushboolean(lua_State *, int);
extern const char *luaL_checklstring(lua_State *, int, size_t *);
extern double luaL_checknumber(lua_State *, int);
extern int lua_gettop(lua_State *);
extern void *luaL_pushcdata(lua_State *, uint32_t), *luaL_checkcdata(lua_State *, int, uint32_t *);
extern uint32_t luaL_ctypeid(lua_State *, const char *);
extern int luaL_cdef(lua_State *, const char *);
extern void luaL_setcdatagc(lua_State *, int), luaL_pushuint64(lua_State *, uint64_t), luaL_pushint64(lua_State *, int64_t);
extern uint64_t luaL_checkuint64(lua_State *, int), luaL_touint64(lua_State *, int);
extern int64_t luaL_checkint64(lua_State *, int);
extern int luaL_iscallable(lua_State *, int), luaT_call(lua_State *, int, int), luaT_error(lua_State *);
extern const char *luaT_tolstring(lua_State *, int, size_t *);
extern box_tuple_t *luaT_istuple(lua_State *, int), *luaT_checktuple(lua_State *, int);
extern void luaT_pushtuple(lua_State *, box_tuple_t *);
extern lua_State *luaT_state(void);
extern void *box_tuple_format_default(void);
extern box_tuple_t *box_tuple_new(void *, const char *, const char *);
extern int box_tuple_ref(box_tuple_t *);
extern void box_tuple_unref(box_tuple_t *);
extern uint32_t box_tuple_field_count(box_tuple_t *);
extern size_t box_tuple_bsize(box_tuple_t *);
extern ssize_t box_tuple_to_buf(box_tuple_t *, char *, size_t);
extern const char *box_tuple_field(box_tuple_t *, uint32_t);
extern box_tuple_iterator_t *box_tuple_iterator(box_tuple_t *);
extern const char *box_tuple_next(box_tuple_iterator_t *);
extern uint32_t box_tuple_position(box_tuple_iterator_t *);
extern void box_tuple_iterator_free(box_tuple_iterator_t *);
extern uint32_t box_space_id_by_name(const char *, uint32_t), box_index_id_by_name(uint32_t, const char *, uint32_t);
extern int box_insert(uint32_t, const char *, const char *, box_tuple_t **), box_replace(uint32_t, const char *, const char *, box_tuple_t **);
extern int box_delete(uint32_t, uint32_t, const char *, const char *, box_tuple_t **);
extern int box_update(uint32_t, uint32_t, const char *, const char *, const char *, const char *, int, box_tuple_t **);
extern int box_index_get(uint32_t, uint32_t, const char *, const char *, box_tuple_t **);
extern int box_index_max(uint32_t, uint32_t, const char *, const char *, box_tuple_t **);
extern ssize_t box_index_len(uint32_t, uint32_t), box_index_count(uint32_t, uint32_t, int, const char *, const char *);
extern box_iterator_t *box_index_iterator(uint32_t, uint32_t, int, const char *, const char *);
extern int box_iterator_next(box_iterator_t *, box_tuple_t **);
extern void box_iterator_free(box_iterator_t *);
extern bool box_txn(void);
extern int64_t box_txn_id(void);
extern int box_txn_begin(void), box_txn_commit(void), box_txn_rollback(void);
extern box_error_t *box_error_last(void);
extern uint32_t box_error_code(const box_error_t *);
extern const char *box_error_message(const box_error_t *), *box_error_type(const box_error_t *);
extern int box_error_set(const char *, unsigned, uint32_t, const char *, ...);
extern struct fiber *fiber_new(const char *, int (*)(va_list)), *fiber_self(void);
extern void fiber_start(struct fiber *, ...), fiber_sleep(double), fiber_yield(void), fiber_wakeup(struct fiber *), fiber_cancel(struct fiber *);
extern void fiber_set_joinable(struct fiber *, bool);
extern int fiber_join(struct fiber *);
extern bool fiber_is_cancelled(void);
extern struct fiber_cond *fiber_cond_new(void);
extern void fiber_cond_delete(struct fiber_cond *), fiber_cond_signal(struct fiber_cond *);
extern int fiber_cond_wait_timeout(struct fiber_cond *, double);
extern int coio_wait(int, int, double);
extern int log_level;
extern void (*_say)(int, const char *, int, const char *, const char *, ...);

/* Rows are arrays of small numbers. */
static char *encode(char *at, int count, const int *numbers)
{
	*at++ = (char)(0x90 + count);
	for (int i = 0; i < count; i++)
		*at++ = (char)numbers[i];
	return at;
}

#define ROW(...) \
	char row[16]; \
	int numbers[] = {__VA_ARGS__}; \
	char *end = encode(row, (int)(sizeof(numbers) / sizeof(*numbers)), numbers)

/* fill(space, count) -> rows in the space, bytes of the last one */
static int fill(lua_State *L)
{
	size_t length;
	const char *name = luaL_checklstring(L, 1, &length);
	uint32_t space = box_space_id_by_name(name, (uint32_t)length);
	if (space == 2147483647) {
		box_error_set(__FILE__, __LINE__, 36, "no space %s for the module", name);
		return luaT_error(L);
	}
	box_tuple_t *tuple = NULL;
	for (int i = 1; i <= (int)luaL_checknumber(L, 2); i++) {
		ROW(i, i * 2);
		if (box_insert(space, row, end, &tuple) != 0)
			return luaT_error(L);
	}
	lua_pushinteger(L, box_index_len(space, 0));
	lua_pushinteger(L, tuple == NULL ? 0 : (ptrdiff_t)box_tuple_bsize(tuple));
	return 2;
}

/* sum(space) -> sum of the second fields, number of rows with keys of 2 and more, greatest key */
static int sum(lua_State *L)
{
	size_t length;
	const char *name = luaL_checklstring(L, 1, &length);
	uint32_t space = box_space_id_by_name(name, (uint32_t)length);
	uint32_t index = box_index_id_by_name(space, "pk", 2);
	ROW(2);
	char none = (char)0x90;
	box_iterator_t *iterator = box_index_iterator(space, index, 2, &none, &none + 1);
	if (iterator == NULL)
		return luaT_error(L);
	box_tuple_t *tuple;
	int total = 0;
	while (box_iterator_next(iterator, &tuple) == 0 && tuple != NULL) {
		box_tuple_iterator_t *fields = box_tuple_iterator(tuple);
		box_tuple_next(fields);
		total += *box_tuple_next(fields);
		if (box_tuple_next(fields) != NULL || box_tuple_position(fields) != 2)
			total = -1000;
		box_tuple_iterator_free(fields);
	}
	box_iterator_free(iterator);
	lua_pushinteger(L, total);
	lua_pushinteger(L, box_index_count(space, index, 5, row, end));
	if (box_index_max(space, index, &none, &none + 1, &tuple) != 0)
		return luaT_error(L);
	lua_pushinteger(L, *box_tuple_field(tuple, 0));
	return 3;
}

/* move(space, commits): a transaction that changes a row -> the row */
static int move(lua_State *L)
{
	size_t length;
	const char *name = luaL_checklstring(L, 1, &length);
	uint32_t space = box_space_id_by_name(name, (uint32_t)length);
	ROW(1);
	static const char ops[] = "\x91\x93\xa1=\x01\x63";
	box_tuple_t *tuple;
	if (box_txn() || box_txn_id() != -1 || box_txn_begin() != 0 || !box_txn() || box_txn_id() < 1)
		return luaT_error(L);
	if (box_txn_begin() != -1 || box_error_code(box_error_last()) != 79)
		return luaT_error(L);
	if (box_update(space, 0, row, end, ops, ops + sizeof(ops) - 1, 0, &tuple) != 0)
		return luaT_error(L);
	if ((luaL_checknumber(L, 2) != 0 ? box_txn_commit() : box_txn_rollback()) != 0)
		return luaT_error(L);
	if (box_index_get(space, 0, row, end, &tuple) != 0)
		return luaT_error(L);
	luaT_pushtuple(L, tuple);
	return 1;
}

/* tuples(tuple) -> a tuple made here, whether the argument came back whole */
static int tuples(lua_State *L)
{
	box_tuple_t *given = luaT_checktuple(L, 1);
	char copy[64];
	ssize_t size = box_tuple_to_buf(given, copy, sizeof(copy));
	box_tuple_t *made = box_tuple_new(box_tuple_format_default(), copy, copy + size);
	box_tuple_ref(made);
	box_tuple_new(box_tuple_format_default(), "\x90", "\x90" + 1);
	luaT_pushtuple(L, made);
	lua_pushboolean(L, box_tuple_field_count(made) == box_tuple_field_count(given) && luaT_istuple(L, 1) == given &&
		luaT_istuple(L, 2) == made && box_tuple_field(made, 99) == NULL);
	box_tuple_unref(made);
	return 2;
}

/* refused() -> number of wrong values that are refused */
static int refused(lua_State *L)
{
	static const char *values[] = {"\x91", "\x01", "\xc1", "\xdd\xff\xff\xff\xff", "\x90\x90", ""};
	int count = 0;
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		const char *end = values[i] + strlen(values[i]);
		box_tuple_t *tuple = NULL;
		count += box_tuple_new(NULL, values[i], end) == NULL && box_insert(512, values[i], end, &tuple) == -1 && tuple == NULL;
	}
	count += box_tuple_new(NULL, values[0], NULL) == NULL && box_index_iterator(512, 0, 99, "\x90", "\x90") == NULL;
	count += luaL_ctypeid(L, "struct no_such") == 0;
	count += box_index_len(99999, 0) == -1 && box_index_get(512, 99, "\x90", "\x90", NULL) == -1;
	lua_pushinteger(L, count);
	return 1;
}

/* cdata(number) -> that number as uint64 and int64, a structure of the module's own, whether callables are known */
static int cdata(lua_State *L)
{
	uint32_t id;
	luaL_cdef(L, "struct module_point { int x, y; };");
	uint32_t type = luaL_ctypeid(L, "struct module_point");
	luaL_pushuint64(L, luaL_checkuint64(L, 1));
	luaL_pushint64(L, -luaL_checkint64(L, 1));
	int *point = luaL_pushcdata(L, type);
	point[0] = 3, point[1] = 4;
	int same = luaL_checkcdata(L, lua_gettop(L), &id) == point && id == type;
	same = same && luaL_cdef(L, "not C") != 0;
	lua_settop(L, -2);
	lua_pushboolean(L, same);
	return 4;
}

/* call(function, argument) -> result, or the error's class, number and text */
static int call(lua_State *L)
{
	if (!luaL_iscallable(L, 1))
		return 0;
	lua_settop(L, 2);
	if (luaT_call(L, 1, 1) == 0) {
		luaT_tolstring(L, -1, NULL);
		return 1;
	}
	lua_pushstring(L, box_error_type(box_error_last()));
	lua_pushinteger(L, box_error_code(box_error_last()));
	lua_pushstring(L, box_error_message(box_error_last()));
	return 3;
}

static int steps;

static int worker(va_list arguments)
{
	int number = va_arg(arguments, int);
	const char *text = va_arg(arguments, const char *);
	steps += number;
	fiber_sleep(0.001);
	steps *= 2;
	return text[0];
}

static int sleeper(va_list arguments)
{
	(void)arguments;
	while (!fiber_is_cancelled())
		fiber_sleep(100);
	return -7;
}

static struct fiber_cond *cond;

static int waiter(va_list arguments)
{
	(void)arguments;
	return fiber_cond_wait_timeout(cond, 100);
}

/* fibers() -> results of fibers of the module */
static int fibers(lua_State *L)
{
	steps = 0;
	struct fiber *first = fiber_new("module", worker), *second = fiber_new("module", sleeper), *third = fiber_new("module", waiter);
	fiber_set_joinable(first, true), fiber_set_joinable(second, true), fiber_set_joinable(third, true);
	fiber_start(first, 21, "x");
	lua_pushinteger(L, steps);
	lua_pushinteger(L, fiber_join(first));
	lua_pushinteger(L, steps);
	fiber_start(second);
	fiber_cancel(second);
	lua_pushinteger(L, fiber_join(second));
	cond = fiber_cond_new();
	fiber_wakeup(third);
	lua_pushinteger(L, fiber_cond_wait_timeout(cond, 0.001));
	fiber_cond_signal(cond);
	lua_pushinteger(L, fiber_join(third));
	fiber_cond_delete(cond);
	int ends[2];
	if (pipe(ends) != 0)
		return 0;
	lua_pushinteger(L, coio_wait(ends[0], 1, 0.001));
	lua_pushinteger(L, coio_wait(ends[1], 2, 1));
	close(ends[0]), close(ends[1]);
	return 8;
}

/* say(text) */
static int say(lua_State *L)
{
	if (4 <= log_level)
		_say(4, __FILE__, __LINE__, NULL, "%s %d", luaL_checklstring(L, 1, NULL), 42);
	return 0;
}

int luaopen_module_in_c(lua_State *L)
{
	static const struct { const char *name; lua_CFunction function; } functions[] = {
		{"fill", fill}, {"sum", sum}, {"move", move}, {"tuples", tuples}, {"cdata", cdata}, {"call", call}, {"fibers", fibers}, {"say", say}, {"refused", refused},
	};
	lua_createtable(L, 0, 8);
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		lua_pushcclosure(L, functions[i].function, 0);
		lua_setfield(L, -2, functions[i].name);
	}
	lua_pushboolean(L, luaT_state() != NULL && fiber_self() != NULL);
	lua_setfield(L, -2, "has_state");
	return 1;
}
