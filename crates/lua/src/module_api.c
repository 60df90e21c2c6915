/*
 * The half in C of the functions that modules in C call (Tarantool's module.h): those with variable arguments, those that raise Lua errors,
 * and those about cdata. The other half is module_api/; its functions never raise.
 */
#define LUA_CORE
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include "lua.h"
#include "lauxlib.h"
#include "lj_obj.h"
#include "lj_gc.h"
#include "lj_state.h"
#include "lj_ctype.h"
#include "lj_cdata.h"

/* Of shim.c. */
void *ljshim_push_cdata(lua_State *L, uint32_t type_id);

/* Of module_api/. */
void lycosa_note_lua_error(lua_State *L);
void lycosa_push_last_error(lua_State *L);
void *lycosa_tuple_at(lua_State *L, int index);
void lycosa_set_error(const char *file, unsigned line, uint32_t code, const char *text);
void lycosa_say(int level, const char *file, int line, const char *error, const char *text);
void lycosa_fiber_start(void *fiber, void *arguments);

/* Whole numbers up to here are plain Lua numbers, as wherever Lua gets one from a row. */
#define PLAIN_MAX 99999999999999LL
/* Longest text of an error or a line of the log that C makes. */
#define TEXT_SIZE 2048

/* cdata -------------------------------------------------------------------------------------------------------------------------- */

static GCcdata *cdata_at(lua_State *L, int index)
{
	TValue *o = index > 0 ? L->base + (index - 1) : L->top + index;
	if (index < -10000 || o < L->base || o >= L->top || !tviscdata(o))
		return NULL;
	return cdataV(o);
}

void *luaL_pushcdata(lua_State *L, uint32_t ctypeid)
{
	return ljshim_push_cdata(L, ctypeid);
}

void *luaL_checkcdata(lua_State *L, int index, uint32_t *ctypeid)
{
	GCcdata *cd = cdata_at(L, index);
	*ctypeid = 0;
	if (cd == NULL) {
		luaL_error(L, "expected cdata as %d argument", index);
		return NULL;
	}
	*ctypeid = cd->ctypeid;
	return cdataptr(cd);
}

bool luaL_iscdata(lua_State *L, int index)
{
	return cdata_at(L, index) != NULL;
}

/* The finalizer is on top of the stack and is taken from it. */
void luaL_setcdatagc(lua_State *L, int index)
{
	GCcdata *cd = cdata_at(L, index);
	if (cd != NULL) {
		TValue *finalizer = L->top - 1;
		lj_cdata_setfin(L, cd, gcval(finalizer), itype(finalizer));
	}
	lua_settop(L, -2);
}

/* Leaves the function of ffi and a text on the stack. */
static void push_ffi_call(lua_State *L, const char *name, const char *text)
{
	lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
	lua_getfield(L, -1, "ffi");
	lua_getfield(L, -1, name);
	lua_pushstring(L, text);
}

uint32_t luaL_ctypeid(lua_State *L, const char *ctypename)
{
	int top = lua_gettop(L);
	uint32_t id = 0;
	push_ffi_call(L, "typeof", ctypename);
	if (lua_pcall(L, 1, 1, 0) == 0 && cdata_at(L, -1) != NULL)
		id = *(CTypeID *)cdataptr(cdata_at(L, -1));
	lua_settop(L, top);
	return id;
}

/* As lua_pcall: not 0 if the declaration is wrong, with the reason on the stack. */
int luaL_cdef(lua_State *L, const char *declaration)
{
	int top = lua_gettop(L), status;
	push_ffi_call(L, "cdef", declaration);
	status = lua_pcall(L, 1, 0, 0);
	if (status != 0)
		lua_replace(L, top + 1);
	lua_settop(L, status == 0 ? top : top + 1);
	return status;
}

void luaL_pushuint64(lua_State *L, uint64_t value)
{
	if (value <= (uint64_t)PLAIN_MAX)
		lua_pushnumber(L, (lua_Number)value);
	else
		*(uint64_t *)ljshim_push_cdata(L, CTID_UINT64) = value;
}

void luaL_pushint64(lua_State *L, int64_t value)
{
	if (value <= PLAIN_MAX && value >= -PLAIN_MAX)
		lua_pushnumber(L, (lua_Number)value);
	else
		*(int64_t *)ljshim_push_cdata(L, CTID_INT64) = value;
}

/* Reads a number, a text of one or a 64-bit cdata; false if it is none of these. */
static bool read_integer(lua_State *L, int index, uint64_t *result)
{
	GCcdata *cd = cdata_at(L, index);
	if (cd != NULL) {
		if (cd->ctypeid != CTID_INT64 && cd->ctypeid != CTID_UINT64)
			return false;
		*result = *(uint64_t *)cdataptr(cd);
		return true;
	}
	if (lua_isnumber(L, index)) {
		lua_Number number = lua_tonumber(L, index);
		/* What has no place in 64 bits has no value; a conversion of it has none either. */
		if (!(number > -9223372036854775808.0 && number < 18446744073709551616.0))
			*result = 0;
		else
			*result = number < 0 ? (uint64_t)(int64_t)number : (uint64_t)number;
		return true;
	}
	return false;
}

uint64_t luaL_touint64(lua_State *L, int index)
{
	uint64_t result = 0;
	return read_integer(L, index, &result) ? result : 0;
}

int64_t luaL_toint64(lua_State *L, int index)
{
	return (int64_t)luaL_touint64(L, index);
}

uint64_t luaL_checkuint64(lua_State *L, int index)
{
	uint64_t result = 0;
	if (!read_integer(L, index, &result)) {
		lua_pushfstring(L, "expected uint64_t as %d argument", index);
		lua_error(L);
	}
	return result;
}

int64_t luaL_checkint64(lua_State *L, int index)
{
	uint64_t result = 0;
	if (!read_integer(L, index, &result)) {
		lua_pushfstring(L, "expected int64_t as %d argument", index);
		lua_error(L);
	}
	return (int64_t)result;
}

/* Calls and errors --------------------------------------------------------------------------------------------------------------- */

int luaL_iscallable(lua_State *L, int index)
{
	int result = lua_isfunction(L, index);
	if (!result && luaL_getmetafield(L, index, "__call")) {
		result = 1;
		lua_settop(L, -2);
	}
	return result;
}

/* Raises the last error of the box functions. */
int luaT_error(lua_State *L)
{
	lycosa_push_last_error(L);
	return lua_error(L);
}

int luaT_push_nil_and_error(lua_State *L)
{
	lua_pushnil(L);
	lycosa_push_last_error(L);
	return 2;
}

/* As lua_call; what is raised becomes the last error. */
int luaT_call(lua_State *L, int arguments, int results)
{
	if (lua_pcall(L, arguments, results, 0) == 0)
		return 0;
	lycosa_note_lua_error(L);
	lua_settop(L, -2);
	return -1;
}

int luaT_cpcall(lua_State *L, lua_CFunction function, void *argument)
{
	if (lua_cpcall(L, function, argument) == 0)
		return 0;
	lycosa_note_lua_error(L);
	lua_settop(L, -2);
	return -1;
}

/* Leaves the text on the stack, too. */
const char *luaT_tolstring(lua_State *L, int index, size_t *size)
{
	if (index < 0 && index > LUA_REGISTRYINDEX)
		index = lua_gettop(L) + index + 1;
	lua_getglobal(L, "tostring");
	lua_pushvalue(L, index);
	lua_call(L, 1, 1);
	return lua_tolstring(L, -1, size);
}

void *luaT_istuple(lua_State *L, int index)
{
	if (index < 0 && index > LUA_REGISTRYINDEX)
		index = lua_gettop(L) + index + 1;
	return lycosa_tuple_at(L, index);
}

void *luaT_checktuple(lua_State *L, int index)
{
	void *tuple = luaT_istuple(L, index);
	if (tuple == NULL)
		luaL_error(L, "Invalid argument #%d (box.tuple expected, got %s)", index, lua_typename(L, lua_type(L, index)));
	return tuple;
}

int box_error_set(const char *file, unsigned line, uint32_t code, const char *format, ...)
{
	char text[TEXT_SIZE];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	lycosa_set_error(file, line, code, text);
	return -1;
}

/* Log of events ------------------------------------------------------------------------------------------------------------------ */

/* Modules compare with it before they call; which lines are written is decided where they arrive. */
int log_level = 7;

static void say_plain(int level, const char *file, int line, const char *error, const char *format, ...)
{
	char text[TEXT_SIZE];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	lycosa_say(level, file, line, error, text);
}

void (*_say)(int, const char *, int, const char *, const char *, ...) = say_plain;

/* Fibers ------------------------------------------------------------------------------------------------------------------------- */

struct arguments {
	va_list list;
};

/* Called on the new fiber's stack. The arguments are those of fiber_start, whose caller waits until the fiber waits for the first time. */
int lycosa_call_fiber(int (*function)(va_list), void *arguments)
{
	va_list none;
	memset(&none, 0, sizeof(none));
	if (arguments == NULL)
		return function(none);
	return function(((struct arguments *)arguments)->list);
}

void fiber_start(void *fiber, ...)
{
	struct arguments arguments;
	va_start(arguments.list, fiber);
	lycosa_fiber_start(fiber, &arguments);
	va_end(arguments.list);
}
