<?php
declare(strict_types=1);

/**
 * A small client of Tarantool's binary protocol: it logs in and calls procedures, one at a time, on a connection that outlives the PHP request.
 *
 * The protocol: greeting of 128 bytes (two lines; the second begins with the salt in base64), then packets each way: length, header map, body map, all
 * MessagePack. See docs/formats of the server.
 */
class IprotoError extends RuntimeException
{
}

/** The server could not be reached, went away, or did not answer in time: nobody knows whether the call was executed. */
final class IprotoGone extends IprotoError
{
}

final class Iproto
{
    private const REQUEST_TYPE = 0x00;
    private const SYNC = 0x01;
    private const TUPLE = 0x21;
    private const FUNCTION_NAME = 0x22;
    private const USER_NAME = 0x23;
    private const DATA = 0x30;
    private const ERROR_24 = 0x31;
    private const AUTH = 7;
    private const CALL = 10;

    private const GREETING_BYTES = 128;
    private const ANSWER_BYTES_MAX = 1 << 20;
    /** Answers to requests of somebody whose PHP request ended before he had read them. */
    private const STALE_ANSWERS_MAX = 16;

    /** @var resource|null */
    private $socket = null;

    public function __construct(
        private string $address,
        private string $user,
        private string $password,
        private bool $persistent = true,
        private float $seconds = 5.0,
    ) {
    }

    /**
     * Calls a procedure; gives what it returned as a list.
     * @throws IprotoGone if the connection failed: the procedure may have been executed or not
     * @throws IprotoError if the server refuses the call; its code is the server's
     */
    public function call(string $name, array $arguments): array
    {
        // The connection may be one that the server left in the meantime, when it was restarted. That is found out by using it; so one that had
        // worked before gets a second try. Procedures that are called like this may be executed twice: voting.lua counts a ballot once.
        $used_before = $this->connect();
        $body = Msgpack::map([self::FUNCTION_NAME => Msgpack::text($name), self::TUPLE => Msgpack::value($arguments)]);
        try {
            return $this->request(self::CALL, $body);
        } catch (IprotoGone $gone) {
            if (!$used_before) {
                throw $gone;
            }
        }
        while ($this->connect()) {
            $this->close();
        }
        return $this->request(self::CALL, $body);
    }

    /** Connects and logs in; true if the connection was there already. */
    private function connect(): bool
    {
        if ($this->socket !== null) {
            return true;
        }
        $open = $this->persistent ? pfsockopen(...) : fsockopen(...);
        $local = str_starts_with($this->address, '/');
        [$host, $port] = $local ? ['unix://' . $this->address, -1] : explode(':', $this->address, 2);
        $socket = @$open($host, (int) $port, $number, $text, $this->seconds);
        if ($socket === false) {
            throw new IprotoGone("cannot connect to the database at $this->address: $text");
        }
        $this->socket = $socket;
        stream_set_timeout($socket, (int) $this->seconds, (int) (fmod($this->seconds, 1.0) * 1e6));
        // How many bytes were read says whether this connection is new: PHP tells it of a persistent one in no other way.
        $read = ftell($socket);
        if ($read > self::GREETING_BYTES) {
            return true;
        }
        if ($read > 0) {
            // Somebody ended in the middle of his login.
            $this->close();
            return $this->connect();
        }
        if (!$local) {
            self::send_at_once($socket);
        }
        $greeting = $this->read(self::GREETING_BYTES);
        if (!str_starts_with($greeting, 'Tarantool ')) {
            $this->close();
            throw new IprotoError("what listens at $this->address is no Tarantool");
        }
        $salt = substr((string) base64_decode(substr($greeting, 64, 44)), 0, 20);
        // chap-sha1: the password never goes over the line.
        $hash = sha1($this->password, true);
        $scramble = $hash ^ sha1($salt . sha1($hash, true), true);
        try {
            $this->request(self::AUTH, Msgpack::map([
                self::USER_NAME => Msgpack::text($this->user),
                self::TUPLE => Msgpack::value(['chap-sha1', $scramble]),
            ]));
        } catch (IprotoError $error) {
            // The next request must not take this connection for one that is logged in.
            $this->close();
            throw $error;
        }
        return false;
    }

    /** Small packets leave when they are written. */
    private static function send_at_once($socket): void
    {
        if (function_exists('socket_import_stream')) {
            $raw = @socket_import_stream($socket);
            if ($raw) {
                @socket_set_option($raw, SOL_TCP, TCP_NODELAY, 1);
            }
        }
    }

    /** Sends a request and waits for the answer to just this one. */
    private function request(int $type, string $body): array
    {
        $sync = random_int(1, 0x7fffffff);
        $packet = Msgpack::map([self::REQUEST_TYPE => Msgpack::value($type), self::SYNC => Msgpack::value($sync)]) . $body;
        $packet = "\xce" . pack('N', strlen($packet)) . $packet;
        if (@fwrite($this->socket, $packet) !== strlen($packet)) {
            $this->gone('it does not take the request');
        }
        for ($stale = 0; $stale <= self::STALE_ANSWERS_MAX; $stale++) {
            $length = $this->read(5);
            $bytes = $length[0] === "\xce" ? unpack('N', $length, 1)[1] : self::ANSWER_BYTES_MAX + 1;
            if ($bytes > self::ANSWER_BYTES_MAX) {
                $this->close();
                throw new IprotoError('the database answered with something that is no answer');
            }
            $reader = new Msgpack($this->read($bytes));
            $header = $reader->next();
            if (($header[self::SYNC] ?? null) !== $sync) {
                continue;
            }
            $answer = $reader->is_at_end() ? [] : $reader->next();
            if (($header[self::REQUEST_TYPE] ?? 0) !== 0) {
                // The upper bit of the type says that it is an error, the others which.
                throw new IprotoError((string) ($answer[self::ERROR_24] ?? 'an error without a text'), $header[self::REQUEST_TYPE] & 0x7fff);
            }
            return $answer[self::DATA] ?? [];
        }
        $this->gone('it answers other requests');
    }

    private function read(int $bytes): string
    {
        $data = '';
        while (strlen($data) < $bytes) {
            $more = @fread($this->socket, $bytes - strlen($data));
            if ($more === false || $more === '') {
                $this->gone('it does not answer');
            }
            $data .= $more;
        }
        return $data;
    }

    private function gone(string $why): never
    {
        $this->close();
        throw new IprotoGone("the database at $this->address is away: $why");
    }

    private function close(): void
    {
        if ($this->socket !== null) {
            @fclose($this->socket);
            $this->socket = null;
        }
    }
}

/** MessagePack, as much as calls and their answers need. */
final class Msgpack
{
    private const DEPTH_MAX = 32;
    private int $at = 0;
    private int $depth = 0;

    public function __construct(private string $bytes)
    {
    }

    /** A map of numbers to values that are encoded already. */
    public static function map(array $encoded): string
    {
        $map = chr(0x80 | count($encoded));
        foreach ($encoded as $key => $value) {
            $map .= self::value($key) . $value;
        }
        return $map;
    }

    public static function text(string $text): string
    {
        $length = strlen($text);
        return ($length < 32 ? chr(0xa0 | $length) : "\xdb" . pack('N', $length)) . $text;
    }

    /** Encodes null, booleans, integers, floats, strings and lists. */
    public static function value(mixed $value): string
    {
        if ($value === null) {
            return "\xc0";
        }
        if (is_bool($value)) {
            return $value ? "\xc3" : "\xc2";
        }
        if (is_int($value)) {
            if ($value >= 0) {
                return $value < 128 ? chr($value) : "\xcf" . pack('J', $value);
            }
            return "\xd3" . pack('J', $value);
        }
        if (is_float($value)) {
            return "\xcb" . pack('E', $value);
        }
        if (is_string($value)) {
            return self::text($value);
        }
        if (is_array($value) && array_is_list($value)) {
            $count = count($value);
            return ($count < 16 ? chr(0x90 | $count) : "\xdd" . pack('N', $count)) . implode('', array_map(self::value(...), $value));
        }
        throw new IprotoError('cannot encode ' . get_debug_type($value));
    }

    public function is_at_end(): bool
    {
        return $this->at >= strlen($this->bytes);
    }

    /** Decodes the next value; maps and arrays become PHP's arrays. */
    public function next(): mixed
    {
        $type = ord($this->take(1));
        return match (true) {
            $type < 0x80 => $type,
            $type < 0x90 => $this->items($type & 0x0f, true),
            $type < 0xa0 => $this->items($type & 0x0f, false),
            $type < 0xc0 => $this->take($type & 0x1f),
            $type >= 0xe0 => $type - 0x100,
            default => match ($type) {
                0xc0 => null,
                0xc2 => false,
                0xc3 => true,
                0xc4, 0xd9 => $this->take(ord($this->take(1))),
                0xc5, 0xda => $this->take($this->number('n', 2)),
                0xc6, 0xdb => $this->take($this->number('N', 4)),
                0xca => $this->number('G', 4),
                0xcb => $this->number('E', 8),
                0xcc => ord($this->take(1)),
                0xcd => $this->number('n', 2),
                0xce => $this->number('N', 4),
                0xcf, 0xd3 => $this->number('J', 8),
                0xd0 => unpack('c', $this->take(1))[1],
                0xd1 => self::signed($this->number('n', 2), 16),
                0xd2 => self::signed($this->number('N', 4), 32),
                0xdc => $this->items($this->number('n', 2), false),
                0xdd => $this->items($this->number('N', 4), false),
                0xde => $this->items($this->number('n', 2), true),
                0xdf => $this->items($this->number('N', 4), true),
                default => throw new IprotoError(sprintf('MessagePack of a kind that is not understood here: 0x%02x', $type)),
            },
        };
    }

    private function items(int $count, bool $with_keys): array
    {
        if (++$this->depth > self::DEPTH_MAX || $count > strlen($this->bytes) - $this->at) {
            throw new IprotoError('the answer is not MessagePack');
        }
        $items = [];
        for (; $count > 0; $count--) {
            if ($with_keys) {
                $key = $this->next();
                if (!is_int($key) && !is_string($key)) {
                    throw new IprotoError('a map of the answer has a key that is neither number nor string');
                }
                $items[$key] = $this->next();
            } else {
                $items[] = $this->next();
            }
        }
        $this->depth--;
        return $items;
    }

    private function number(string $format, int $bytes): int|float
    {
        return unpack($format, $this->take($bytes))[1];
    }

    private static function signed(int $number, int $bits): int
    {
        return $number >= 1 << ($bits - 1) ? $number - (1 << $bits) : $number;
    }

    private function take(int $bytes): string
    {
        if ($bytes > strlen($this->bytes) - $this->at) {
            throw new IprotoError('the answer is cut');
        }
        $taken = substr($this->bytes, $this->at, $bytes);
        $this->at += $bytes;
        return $taken;
    }
}
