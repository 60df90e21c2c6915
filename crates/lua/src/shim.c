/*
 * What LuaJIT's public API does not offer: cdata by type, tuple objects that let go of their rows when they are freed, and whether a
 * yield is safe now.
 * Re-check against lj_obj.h, lj_gc.h, lj_cdata.c and lj_jit.h at every update of LuaJIT.
 */
#define LUA_CORE
/* This file takes the place of lj_cdata.o (see build.rs): the same code, with one function below put before another. */
#define lj_cdata_free cdata_free_plain
#include "lj_cdata.c"
#undef lj_cdata_free
#include "lua.h"
#include "lauxlib.h"
#include "lj_obj.h"
#include "lj_gc.h"
#include "lj_state.h"
#include "lj_ctype.h"
#include "lj_cdata.h"
#include "lj_tab.h"
#include "lj_jit.h"

/* The payload of the cdata at a positive index and its type; NULL if it is no cdata. */
void *ljshim_to_cdata(lua_State *L, int index, uint32_t *type_id)
{
	TValue *o = L->base + (index - 1);
	if (o >= L->top || !tviscdata(o))
		return NULL;
	GCcdata *cd = cdataV(o);
	*type_id = cd->ctypeid;
	return cdataptr(cd);
}

/* Bytes of the payload of the cdata at a positive index: of one of variable length those that it was made with. */
size_t ljshim_cdata_size(lua_State *L, int index)
{
	GCcdata *cd = cdataV(L->base + (index - 1));
	CTSize size;
	if (cdataisv(cd))
		return cdatavlen(cd);
	size = lj_ctype_size(ctype_cts(L), cd->ctypeid);
	return size == CTSIZE_INVALID ? 0 : size;
}

/* Pushes a new cdata of a type and returns its payload. */
void *ljshim_push_cdata(lua_State *L, uint32_t type_id)
{
	CTState *cts = ctype_cts(L);
	CTSize size = 0;
	GCcdata *cd;
	lj_ctype_info(cts, type_id, &size);
	lj_gc_check(L);
	cd = lj_cdata_new(cts, type_id, size);
	setcdataV(L, L->top, cd);
	incr_top(L);
	return cdataptr(cd);
}

/*
 * A tuple object holds a reference to its row and gives it back when the collector frees it. LuaJIT's own finalizers would cost a table
 * entry for each object and a call into Lua; here a mark on the object does. It is the bit that userdata use for "finalized" and cdata
 * use only together with a finalizer.
 */
#define OWNS_ROW LJ_GC_FINALIZED

/* The type of tuple objects; 0 until it is known. */
static uint32_t tuple_type;

/* Gives a reference to a row back. Must not touch the Lua state. */
void lycosa_release_row(uint64_t address);

void ljshim_set_tuple_type(uint32_t type_id)
{
	tuple_type = type_id;
}

/* Pushes a tuple object that owns one reference to the row at `address`. */
void ljshim_push_tuple(lua_State *L, uint64_t address)
{
	GCcdata *cd;
	lj_gc_check(L);
	cd = lj_cdata_new(ctype_cts(L), tuple_type, CTSIZE_PTR);
	*(uint64_t *)cdataptr(cd) = address;
	cd->marked |= OWNS_ROW;
	setcdataV(L, L->top, cd);
	incr_top(L);
}

void LJ_FASTCALL lj_cdata_free(global_State *g, GCcdata *cd)
{
	if ((cd->marked & (OWNS_ROW | LJ_GC_CDATA_FIN)) == OWNS_ROW && cd->ctypeid == tuple_type)
		lycosa_release_row(*(uint64_t *)cdataptr(cd));
	cdata_free_plain(g, cd);
}

/*
 * How the table at a positive index is to be encoded, without its metatable: the length of an array, -1 for a map.
 * An array's keys are 1..n, or nearly: up to `safe` places, or not more than `ratio` times as many places as values.
 */
int ljshim_array_length(lua_State *L, int index, int ratio, int safe)
{
	GCtab *t = tabV(L->base + (index - 1));
	int count = 0, max = 0;
	uint32_t i;
	for (i = 0; i < t->asize; i++) {
		if (tvisnil(arrayslot(t, i)))
			continue;
		if (i == 0)
			return -1;
		count++;
		max = (int)i;
	}
	if (t->hmask > 0) {
		Node *node = noderef(t->node);
		for (i = 0; i <= t->hmask; i++) {
			lua_Number key;
			if (tvisnil(&node[i].val))
				continue;
			if (!tvisnumber(&node[i].key))
				return -1;
			key = numberVnum(&node[i].key);
			if (key < 1 || key > 2147483647.0 || key != (lua_Number)(int)key)
				return -1;
			count++;
			if ((int)key > max)
				max = (int)key;
		}
	}
	if (max > safe && (lua_Number)max > (lua_Number)count * ratio)
		return -1;
	return max;
}

/*
 * As lua_next for a table at a positive index, but a key that is not in the table (any more) ends the walk: an error would cross frames
 * that have destructors.
 */
int ljshim_next(lua_State *L, int index)
{
	int more = lj_tab_next(tabV(L->base + (index - 1)), L->top - 1, L->top - 1);
	if (more > 0) {
		incr_top(L);
		return 1;
	}
	L->top--;
	return 0;
}

/* Not 0 from the moment that the running code is to be ended until it has: what loops in C looks at it. */
volatile int lycosa_is_stopping;

void ljshim_set_stopping(int is_stopping)
{
	lycosa_is_stopping = is_stopping;
}

/*
 * Between these two the running fiber may wait although it is in a hook: code of other fibers has its own hooks meanwhile. What the machine
 * was doing is kept by the caller.
 */
int ljshim_leave_hook(lua_State *L)
{
	global_State *g = G(L);
	g->hookmask &= (uint8_t)~HOOK_ACTIVE;
	return g->vmstate;
}

void ljshim_enter_hook(lua_State *L, int vmstate)
{
	global_State *g = G(L);
	g->hookmask |= HOOK_ACTIVE;
	g->vmstate = vmstate;
}

/* 0 if the running fiber may wait; 1 inside an ffi call on a trace, 2 inside a finalizer or hook. */
int ljshim_yield_blocked(lua_State *L)
{
	global_State *g = G(L);
	if (tvref(g->jit_base))
		return 1;
	if (g->hookmask & (HOOK_ACTIVE | HOOK_GC | HOOK_VMEVENT))
		return 2;
	return 0;
}
