// The connector github.com/tarantool/go-tarantool/v2: arguments are host and port.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/tarantool/go-iproto"
	"github.com/tarantool/go-tarantool/v2"
)

const checkMax = 20 * time.Second

var address = os.Args[1] + ":" + os.Args[2]

// What a check that does not hold panics with.
type failure string

func fail(format string, values ...any) {
	panic(failure(fmt.Sprintf(format, values...)))
}

func equal(got, expected any) {
	// Numbers come back in the narrowest type that holds them.
	if fmt.Sprint(got) != fmt.Sprint(expected) {
		fail("got %v, expected %v", got, expected)
	}
}

// An address that leads to the server, and what cuts the connections that go through it.
func proxy() (string, func()) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fail("%s", err)
	}
	var lock sync.Mutex
	var open []net.Conn
	go func() {
		for {
			inner, err := listener.Accept()
			if err != nil {
				return
			}
			outer, err := net.Dial("tcp", address)
			if err != nil {
				inner.Close()
				continue
			}
			lock.Lock()
			open = append(open, inner, outer)
			lock.Unlock()
			go io.Copy(inner, outer)
			go io.Copy(outer, inner)
		}
	}()
	return listener.Addr().String(), func() {
		lock.Lock()
		defer lock.Unlock()
		for _, connection := range open {
			connection.Close()
		}
		open = nil
	}
}

func connect(user, password string, features ...iproto.Feature) *tarantool.Connection {
	return connectTo(address, user, password, features...)
}

func connectTo(address, user, password string, features ...iproto.Feature) *tarantool.Connection {
	ctx, cancel := context.WithTimeout(context.Background(), checkMax)
	defer cancel()
	dialer := tarantool.NetDialer{Address: address, User: user, Password: password,
		RequiredProtocolInfo: tarantool.ProtocolInfo{Features: features}}
	opts := tarantool.Opts{Timeout: checkMax, Reconnect: 10 * time.Millisecond, MaxReconnects: 500}
	connection, err := tarantool.Connect(ctx, dialer, opts)
	if err != nil {
		fail("cannot connect: %s", err)
	}
	return connection
}

// A connection on empty spaces.
func connected() *tarantool.Connection {
	guest := connect("", "")
	do(guest, tarantool.NewCall17Request("clear"))
	guest.Close()
	return connect("tester", "secret word")
}

type doer interface {
	Do(tarantool.Request) *tarantool.Future
}

func do(over doer, request tarantool.Request) []any {
	data, err := over.Do(request).Get()
	if err != nil {
		fail("%T: %s", request, err)
	}
	return data
}

// The request must end with this error.
func refused(over doer, request tarantool.Request, code iproto.Error) tarantool.Error {
	_, err := over.Do(request).Get()
	var refusal tarantool.Error
	if !errors.As(err, &refusal) || refusal.Code != code {
		fail("%T: got %v, expected error %s", request, err, code)
	}
	return refusal
}

func insert(id int, name string) tarantool.Request {
	return tarantool.NewInsertRequest("goods").Tuple([]any{id, name, id})
}

func all() tarantool.Request {
	return tarantool.NewSelectRequest("goods").Iterator(tarantool.IterAll)
}

var checks = []struct {
	name string
	// Only servers that announce this feature; -1 for all.
	feature int
	run     func()
}{
	{"statements, calls and errors with their details", -1, func() {
		connection := connected()
		defer connection.Close()
		equal(do(connection, insert(1, "nut")), "[[1 nut 1]]")
		refusal := refused(connection, insert(1, "nut"), iproto.ER_TUPLE_FOUND)
		if refusal.ExtendedInfo != nil && (refusal.ExtendedInfo.Type != "ClientError" || refusal.ExtendedInfo.Line == 0) {
			fail("details: %v", refusal.ExtendedInfo)
		}
		equal(do(connection, tarantool.NewUpdateRequest("goods").Key([]any{1}).
			Operations(tarantool.NewOperations().Add(2, 5))), "[[1 nut 6]]")
		equal(do(connection, tarantool.NewUpsertRequest("goods").Tuple([]any{2, "bolt", 7}).
			Operations(tarantool.NewOperations().Add(2, 5))), "[]")
		equal(do(connection, all()), "[[1 nut 6] [2 bolt 7]]")
		equal(do(connection, tarantool.NewDeleteRequest("goods").Key([]any{2})), "[[2 bolt 7]]")
		equal(do(connection, tarantool.NewCall17Request("sum").Args([]any{1, 2})), "[3]")
		refused(connection, tarantool.NewCall17Request("no_such_function"), iproto.ER_NO_SUCH_PROC)
		refused(connection, tarantool.NewSelectRequest(uint32(77777)), iproto.ER_NO_SUCH_SPACE)
	}},
	{"a thousand requests at once", -1, func() {
		connection := connected()
		defer connection.Close()
		futures := make([]*tarantool.Future, 1000)
		for id := range futures {
			futures[id] = connection.Do(insert(id, fmt.Sprint("name ", id)))
		}
		for id, future := range futures {
			data, err := future.Get()
			if err != nil {
				fail("%s", err)
			}
			equal(data, fmt.Sprintf("[[%d name %d %d]]", id, id, id))
		}
	}},
	{"a stream commits, rolls back, and is nobody else's until then", int(iproto.IPROTO_FEATURE_STREAMS), func() {
		connection := connected()
		defer connection.Close()
		for _, commits := range []bool{false, true} {
			stream, err := connection.NewStream()
			if err != nil {
				fail("%s", err)
			}
			do(stream, tarantool.NewBeginRequest().Timeout(checkMax).TxnIsolation(tarantool.ReadConfirmedLevel))
			do(stream, insert(1, "nut"))
			do(stream, insert(2, "bolt"))
			refused(stream, insert(1, "nut"), iproto.ER_TUPLE_FOUND)
			equal(do(stream, all()), "[[1 nut 1] [2 bolt 2]]")
			equal(do(connection, all()), "[]")
			if commits {
				do(stream, tarantool.NewCommitRequest())
				equal(do(connection, all()), "[[1 nut 1] [2 bolt 2]]")
			} else {
				do(stream, tarantool.NewRollbackRequest())
				equal(do(connection, all()), "[]")
			}
		}
	}},
	{"of two streams the first to commit wins", int(iproto.IPROTO_FEATURE_TRANSACTIONS), func() {
		connection := connected()
		defer connection.Close()
		do(connection, insert(1, "nut"))
		add := tarantool.NewUpdateRequest("goods").Key([]any{1}).Operations(tarantool.NewOperations().Add(2, 1))
		first, _ := connection.NewStream()
		second, _ := connection.NewStream()
		for _, stream := range []*tarantool.Stream{first, second} {
			do(stream, tarantool.NewBeginRequest())
			do(stream, add)
		}
		do(first, tarantool.NewCommitRequest())
		refused(second, tarantool.NewCommitRequest(), iproto.ER_TRANSACTION_CONFLICT)
		equal(do(connection, all()), "[[1 nut 2]]")
	}},
	{"a stream of a connection that is lost leaves nothing", int(iproto.IPROTO_FEATURE_STREAMS), func() {
		watcher := connected()
		defer watcher.Close()
		connection := connect("tester", "secret word")
		stream, _ := connection.NewStream()
		do(stream, tarantool.NewBeginRequest())
		do(stream, insert(1, "nut"))
		connection.Close()
		equal(do(watcher, all()), "[]")
		do(watcher, insert(1, "nut"))
	}},
	{"a watcher hears of each change and of none behind its end", int(iproto.IPROTO_FEATURE_WATCHERS), func() {
		connection := connect("", "", iproto.IPROTO_FEATURE_WATCHERS)
		defer connection.Close()
		events := make(chan tarantool.WatchEvent, 100)
		watcher, err := connection.NewWatcher("clients.key", func(event tarantool.WatchEvent) { events <- event })
		if err != nil {
			fail("%s", err)
		}
		next := func() any {
			select {
			case event := <-events:
				return event.Value
			case <-time.After(checkMax):
				fail("no event")
				return nil
			}
		}
		next()
		for number := 1; number <= 3; number++ {
			do(connection, tarantool.NewCall17Request("announce").Args([]any{number}))
			equal(next(), number)
		}
		watcher.Unregister()
		do(connection, tarantool.NewCall17Request("announce").Args([]any{4}))
		do(connection, tarantool.NewPingRequest())
		if len(events) != 0 {
			fail("an event behind the end")
		}
	}},
	{"pages of rows", int(iproto.IPROTO_FEATURE_PAGINATION), func() {
		connection := connected()
		defer connection.Close()
		for id := 1; id <= 5; id++ {
			do(connection, insert(id, fmt.Sprint(id)))
		}
		var position []byte
		var pages []string
		for range 3 {
			request := tarantool.NewSelectRequest("goods").Iterator(tarantool.IterAll).Limit(2).FetchPos(true)
			if position != nil {
				request = request.After(position)
			}
			response, err := connection.Do(request).GetResponse()
			if err != nil {
				fail("%s", err)
			}
			data, _ := response.Decode()
			position, _ = response.(*tarantool.SelectResponse).Pos()
			pages = append(pages, fmt.Sprint(data))
		}
		equal(pages, "[[[1 1 1] [2 2 2]] [[3 3 3] [4 4 4]] [[5 5 5]]]")
	}},
	{"a lost connection is made again", -1, func() {
		connected().Close()
		through, cut := proxy()
		connection := connectTo(through, "tester", "secret word")
		defer connection.Close()
		do(connection, insert(1, "nut"))
		cut()
		deadline := time.Now().Add(checkMax)
		for {
			data, err := connection.Do(all()).Get()
			if err == nil {
				equal(data, "[[1 nut 1]]")
				return
			}
			if time.Now().After(deadline) {
				fail("not connected again: %s", err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}},
}

func main() {
	probe := connect("", "")
	announced := probe.ProtocolInfo().Features
	probe.Close()
	failures := 0
	for _, check := range checks {
		has := check.feature < 0
		for _, feature := range announced {
			has = has || int(feature) == check.feature
		}
		if !has {
			fmt.Printf("  absent %s\n", check.name)
			continue
		}
		func() {
			defer func() {
				if caught := recover(); caught != nil {
					failures++
					fmt.Printf("  FAILED %s\n%v\n", check.name, caught)
				} else {
					fmt.Printf("  ok     %s\n", check.name)
				}
			}()
			check.run()
		}()
	}
	if failures > 0 {
		os.Exit(1)
	}
}
