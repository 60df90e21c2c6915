/* What tests/tests/stored_functions.rs loads: stored functions as module.h has them. Built several times, with other numbers as VERSION. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct box_function_ctx box_function_ctx_t;
typedef struct box_tuple box_tuple_t;
typedef struct box_iterator box_iterator_t;
struct fiber;
extern int box_return_tuple(box_function_ctx_t *, box_tuple_t *), box_return_mp(box_function_ctx_t *, const char *, const char *);
extern uint32_t box_space_id_by_name(const char *, uint32_t);
extern int box_insert(uint32_t, const char *, const char *, box_tuple_t **), box_replace(uint32_t, const char *, const char *, box_tuple_t **);
extern int box_delete(uint32_t, uint32_t, const char *, const char *, box_tuple_t **);
extern int box_update(uint32_t, uint32_t, const char *, const char *, const char *, const char *, int, box_tuple_t **);
extern int box_upsert(uint32_t, uint32_t, const char *, const char *, const char *, const char *, int, box_tuple_t **);
extern int box_index_get(uint32_t, uint32_t, const char *, const char *, box_tuple_t **);
extern int box_index_min(uint32_t, uint32_t, const char *, const char *, box_tuple_t **);
extern box_iterator_t *box_index_iterator(uint32_t, uint32_t, int, const char *, const char *);
extern int box_iterator_next(box_iterator_t *, box_tuple_t **);
extern void box_iterator_free(box_iterator_t *);
extern const char *box_tuple_field(box_tuple_t *, uint32_t);
extern int box_txn_begin(void), box_txn_commit(void), box_txn_rollback(void);
extern int box_error_set(const char *, unsigned, uint32_t, const char *, ...);
extern void fiber_sleep(double);

#ifndef VERSION
#define VERSION 1
#endif
#define SPACE "t"
#define EXPORT __attribute__((visibility("default")))
#define FUNCTION(name) EXPORT int name(box_function_ctx_t *ctx, const char *args, const char *args_end)
#define UNUSED (void)ctx, (void)args, (void)args_end

/* Rows are arrays of small numbers. */
static char row[16];
static char *encode(int count, const int *numbers)
{
	row[0] = (char)(0x90 + count);
	for (int i = 0; i < count; i++)
		row[i + 1] = (char)numbers[i];
	return row + count + 1;
}
#define ROW(...) encode(sizeof((int[]){__VA_ARGS__}) / sizeof(int), (int[]){__VA_ARGS__})

static int give_number(box_function_ctx_t *ctx, int number)
{
	char byte = (char)number;
	return box_return_mp(ctx, &byte, &byte + 1);
}

FUNCTION(echo)
{
	return box_return_mp(ctx, args, args_end);
}

FUNCTION(version)
{
	UNUSED;
	return give_number(ctx, VERSION);
}

/* Says that it waits by a row, and waits until that is gone. */
static int wait(int number)
{
	uint32_t space = box_space_id_by_name(SPACE, 1);
	char said[3] = {(char)0x92, (char)number, 0}, key[2] = {(char)0x91, (char)number};
	box_tuple_t *tuple;
	if (box_replace(space, said, said + 3, NULL) != 0)
		return -1;
	do {
		fiber_sleep(0.001);
		if (box_index_get(space, 0, key, key + 2, &tuple) != 0)
			return -1;
	} while (tuple != NULL);
	return 0;
}

/* Waits, and is the same function still. */
FUNCTION(version_after_a_while)
{
	UNUSED;
	return wait(90) == 0 ? give_number(ctx, VERSION) : -1;
}

/* Others fail meanwhile. */
FUNCTION(fails_after_a_while)
{
	UNUSED;
	box_error_set("here.c", 7, 9000, "my own words");
	wait(91);
	return -1;
}

/* What is no msgpack is refused. */
FUNCTION(malformed)
{
	UNUSED;
	const char cut[] = "\x92\x01";
	return box_return_mp(ctx, cut, cut + 2);
}

#if VERSION != 3
FUNCTION(nothing)
{
	UNUSED;
	return 0;
}
#endif

FUNCTION(fails)
{
	UNUSED;
	return -1;
}

FUNCTION(fails_with_words)
{
	UNUSED;
	return box_error_set("here.c", 7, 9000, "%s and %d", "words", 5);
}

/* Gives three things and fails then. */
FUNCTION(fails_late)
{
	UNUSED;
	give_number(ctx, 1);
	return box_error_set("here.c", 7, 9000, "late");
}

/* Each kind of write, what is found then, and a number. */
FUNCTION(writes)
{
	UNUSED;
	uint32_t space = box_space_id_by_name(SPACE, 1);
	box_tuple_t *tuple;
	char *end = ROW(1, 10);
	if (box_insert(space, row, end, &tuple) != 0 || box_return_tuple(ctx, tuple) != 0)
		return -1;
	end = ROW(2, 20);
	if (box_replace(space, row, end, &tuple) != 0 || box_return_tuple(ctx, tuple) != 0)
		return -1;
	end = ROW(2);
	const char operations[] = "\x91\x93\xa1+\x01\x05";
	if (box_update(space, 0, row, end, operations, operations + 6, 0, &tuple) != 0 || box_return_tuple(ctx, tuple) != 0)
		return -1;
	end = ROW(3, 30);
	if (box_upsert(space, 0, row, end, operations, operations + 6, 0, NULL) != 0 || box_upsert(space, 0, row, end, operations, operations + 6, 0, NULL) != 0)
		return -1;
	end = ROW(3);
	if (box_index_get(space, 0, row, end, &tuple) != 0 || box_return_tuple(ctx, tuple) != 0)
		return -1;
	end = ROW(1);
	if (box_delete(space, 0, row, end, &tuple) != 0)
		return -1;
	end = encode(0, NULL);
	if (box_index_min(space, 0, row, end, &tuple) != 0 || box_return_tuple(ctx, tuple) != 0)
		return -1;
	return give_number(ctx, 7);
}

FUNCTION(sum)
{
	UNUSED;
	char *end = encode(0, NULL);
	box_iterator_t *iterator = box_index_iterator(box_space_id_by_name(SPACE, 1), 0, 2, row, end);
	box_tuple_t *tuple;
	int total = 0;
	if (iterator == NULL)
		return -1;
	while (box_iterator_next(iterator, &tuple) == 0 && tuple != NULL)
		total += *box_tuple_field(tuple, 1);
	box_iterator_free(iterator);
	return give_number(ctx, total);
}

/* Two writes, of which the second one fails: nothing stays. */
FUNCTION(rolls_back)
{
	UNUSED;
	uint32_t space = box_space_id_by_name(SPACE, 1);
	char *end = ROW(50, 1);
	if (box_txn_begin() != 0 || box_insert(space, row, end, NULL) != 0)
		return -1;
	if (box_insert(space, row, end, NULL) != 0) {
		box_txn_rollback();
		return -1;
	}
	return box_txn_commit();
}

FUNCTION(commits)
{
	UNUSED;
	uint32_t space = box_space_id_by_name(SPACE, 1);
	char *end = ROW(60, 1);
	if (box_txn_begin() != 0 || box_replace(space, row, end, NULL) != 0 || box_txn_commit() != 0)
		return -1;
	return give_number(ctx, 60);
}

FUNCTION(leaves_a_transaction)
{
	UNUSED;
	uint32_t space = box_space_id_by_name(SPACE, 1);
	char *end = ROW(70, 1);
	if (box_txn_begin() != 0)
		return -1;
	return box_replace(space, row, end, NULL);
}

/* By number: names are looked for among what the user sees. */
FUNCTION(writes_by_number)
{
	UNUSED;
	box_tuple_t *tuple;
	char *end = ROW(80, 1);
	if (box_replace(512, row, end, &tuple) != 0)
		return -1;
	return box_return_tuple(ctx, tuple);
}
