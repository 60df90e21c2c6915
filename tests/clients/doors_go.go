// go-redis and gomemcache against a server: `doors_go HOST REDIS-PORT MEMCACHED-PORT`. The same passes against Redis 7 and memcached.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/redis/go-redis/v9"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func equal(got, wanted any) {
	if !reflect.DeepEqual(got, wanted) {
		panic(fmt.Sprintf("got %v, wanted %v", got, wanted))
	}
}

// of gives the value of an answer that is no error.
func of[T any](value T, err error) T {
	must(err)
	return value
}

func withRedis(address string) {
	ctx := context.Background()
	r := redis.NewClient(&redis.Options{Addr: address})
	must(r.FlushAll(ctx).Err())
	must(r.Set(ctx, "a", "b", time.Minute).Err())
	equal(of(r.Get(ctx, "a").Result()), "b")
	equal(r.Get(ctx, "none").Err(), redis.Nil)
	must(r.HSet(ctx, "h", "x", 1, "y", "two").Err())
	equal(of(r.HGetAll(ctx, "h").Result()), map[string]string{"x": "1", "y": "two"})
	must(r.ZAdd(ctx, "z", redis.Z{Score: 1, Member: "one"}, redis.Z{Score: 2.5, Member: "two"}).Err())
	equal(of(r.ZRangeWithScores(ctx, "z", 0, -1).Result())[1], redis.Z{Score: 2.5, Member: "two"})
	must(r.XAdd(ctx, &redis.XAddArgs{Stream: "x", Values: map[string]any{"k": "v"}}).Err())
	equal(of(r.XRange(ctx, "x", "-", "+").Result())[0].Values, map[string]any{"k": "v"})
	fmt.Println("  go-redis: types")

	must(r.Set(ctx, "n", 0, 0).Err())
	add := func() error {
		return r.Watch(ctx, func(tx *redis.Tx) error {
			n, err := tx.Get(ctx, "n").Int()
			if err != nil {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error { return pipe.Set(ctx, "n", n+1, 0).Err() })
			return err
		}, "n")
	}
	var group sync.WaitGroup
	for i := 0; i < 4; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for done := 0; done < 25; {
				err := add()
				if err == nil {
					done++
				} else if !errors.Is(err, redis.TxFailedErr) {
					panic(err)
				}
			}
		}()
	}
	group.Wait()
	equal(of(r.Get(ctx, "n").Int()), 100)
	commands := of(r.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i := 0; i < 2000; i++ {
			pipe.Incr(ctx, "n")
		}
		return nil
	}))
	equal(commands[1999].(*redis.IntCmd).Val(), int64(2100))
	fmt.Println("  go-redis: transactions")

	script := redis.NewScript("return redis.call('incrby', KEYS[1], ARGV[1])")
	equal(of(script.Run(ctx, r, []string{"n"}, 5).Int()), 2105)
	must(r.ScriptFlush(ctx).Err())
	equal(of(script.Run(ctx, r, []string{"n"}, 5).Int()), 2110)
	pubsub := r.Subscribe(ctx, "news")
	of(pubsub.Receive(ctx))
	equal(of(r.Publish(ctx, "news", "hello").Result()), int64(1))
	equal((<-pubsub.Channel()).Payload, "hello")
	must(pubsub.Close())
	go func() {
		time.Sleep(200 * time.Millisecond)
		r.RPush(ctx, "queue", "job")
	}()
	equal(of(r.BLPop(ctx, 10*time.Second, "queue").Result()), []string{"queue", "job"})
	fmt.Println("  go-redis: scripts, messages and waiting")

	found, iterator := 0, r.Scan(ctx, 0, "*", 3).Iterator()
	for iterator.Next(ctx) {
		found++
	}
	equal(found, 5)
	must(r.ClientKillByFilter(ctx, "SKIPME", "yes").Err())
	equal(of(r.Get(ctx, "a").Result()), "b")
	fmt.Println("  go-redis: reconnects")
}

func withMemcached(address string) {
	c := memcache.New(address)
	must(c.DeleteAll())
	must(c.Set(&memcache.Item{Key: "a", Value: []byte("b"), Flags: 7, Expiration: 100}))
	item := of(c.Get("a"))
	equal([]any{string(item.Value), item.Flags}, []any{"b", uint32(7)})
	equal(c.Add(&memcache.Item{Key: "a", Value: []byte("c")}), memcache.ErrNotStored)
	item.Value = []byte("d")
	must(c.CompareAndSwap(item))
	equal(c.CompareAndSwap(item), memcache.ErrCASConflict)
	must(c.Set(&memcache.Item{Key: "n", Value: []byte("5")}))
	equal(of(c.Increment("n", 7)), uint64(12))
	equal(of(c.Decrement("n", 100)), uint64(0))
	must(c.Touch("a", 50))
	equal(c.Touch("none", 50), memcache.ErrCacheMiss)
	must(c.Append(&memcache.Item{Key: "a", Value: []byte("!")}))
	keys := []string{"missing"}
	for i := 0; i < 300; i++ {
		key := fmt.Sprintf("key:%d", i)
		must(c.Set(&memcache.Item{Key: key, Value: []byte(key)}))
		keys = append(keys, key)
	}
	equal(len(of(c.GetMulti(keys))), 300)
	must(c.Delete("a"))
	equal(c.Delete("a"), memcache.ErrCacheMiss)
	must(c.Ping())
	fmt.Println("  gomemcache: works")
}

func main() {
	withRedis(os.Args[1] + ":" + os.Args[2])
	withMemcached(os.Args[1] + ":" + os.Args[3])
}
