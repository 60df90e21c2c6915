<?php
declare(strict_types=1);

/**
 * The same service through Redis' protocol and php-redis: two scripts do what the procedures of voting.lua do, and are as atomic.
 *
 * voting:session:N   hash: secret, ballots (how many were handed out), ballot:0 to ballot:7 as "token:left:right:choice"; expires
 * voting:sessions    number of the last session
 * voting:rating      sorted set: sticker by rating
 * voting:plus, voting:minus   hashes: votes for and against a sticker
 * voting:votes       how many were counted
 */
final class RedisStore implements Store
{
    private const STICKERS = 1024;

    private const PAGE = <<<'LUA'
        local id, secret, fresh, token, seconds, left, right = unpack(ARGV)
        local key = 'voting:session:' .. id
        local is_new = id == '' or redis.call('HGET', key, 'secret') ~= secret
        if is_new then
            id = redis.call('INCR', 'voting:sessions')
            key = 'voting:session:' .. id
            redis.call('HSET', key, 'secret', fresh)
        end
        local ballot = redis.call('HINCRBY', key, 'ballots', 1) % 8
        redis.call('HSET', key, 'ballot:' .. ballot, token .. ':' .. left .. ':' .. right .. ':0')
        if is_new or redis.call('TTL', key) < seconds / 2 then
            redis.call('EXPIRE', key, seconds)
        end
        return {tostring(id), is_new and 1 or 0}
        LUA;

    private const VOTE = <<<'LUA'
        local id, secret, token, choice = unpack(ARGV)
        local key = 'voting:session:' .. id
        if redis.call('HGET', key, 'secret') ~= secret then
            return 'no session'
        end
        for number = 0, 7 do
            local ballot = redis.call('HGET', key, 'ballot:' .. number)
            local its_token, left, right, voted = string.match(ballot or '', '^(.*):(%d+):(%d+):(%d)$')
            if its_token == token then
                if voted ~= '0' then
                    return 'counted before'
                end
                redis.call('HSET', key, 'ballot:' .. number, token .. ':' .. left .. ':' .. right .. ':' .. choice)
                local winner, loser = left, right
                if choice == '2' then
                    winner, loser = right, left
                end
                redis.call('ZINCRBY', 'voting:rating', 1, winner)
                redis.call('ZINCRBY', 'voting:rating', -1, loser)
                redis.call('HINCRBY', 'voting:plus', winner, 1)
                redis.call('HINCRBY', 'voting:minus', loser, 1)
                redis.call('INCR', 'voting:votes')
                return 'counted'
            end
        end
        return 'no ballot'
        LUA;

    private ?Redis $redis = null;

    public function __construct(
        private string $address,
        private string $password,
        private bool $persistent,
        private int $session_seconds,
    ) {
    }

    public function page(?string $cookie, string $token): array
    {
        [$id, $secret] = parse_cookie($cookie) ?? ['', ''];
        $fresh = fresh_secret();
        $left = random_int(1, self::STICKERS);
        $right = random_int(1, self::STICKERS - 1);
        $right += $right >= $left ? 1 : 0;
        $arguments = [$id, $secret, $fresh, $token, $this->session_seconds, $left, $right];
        [$id, $is_new] = $this->once_more(fn () => $this->script(self::PAGE, $arguments));
        return ['cookie' => $id . '-' . ($is_new ? $fresh : $secret), 'is_new' => (bool) $is_new, 'left' => $left, 'right' => $right];
    }

    public function vote(?string $cookie, string $token, int $choice): string
    {
        $session = parse_cookie($cookie);
        if ($session === null || ($choice !== 1 && $choice !== 2)) {
            return $session === null ? 'no session' : 'no ballot';
        }
        return $this->once_more(fn () => $this->script(self::VOTE, [...$session, $token, $choice]));
    }

    public function best(int $limit): array
    {
        return $this->once_more(fn () => $this->rows($this->redis->zRevRange('voting:rating', 0, $limit - 1, true)));
    }

    public function worst(int $limit): array
    {
        return $this->once_more(fn () => $this->rows($this->redis->zRange('voting:rating', 0, $limit - 1, true)));
    }

    public function about(): array
    {
        return $this->once_more(fn () => [
            'stickers' => self::STICKERS,
            'votes' => (int) $this->redis->get('voting:votes'),
            'sessions' => (int) $this->redis->get('voting:sessions'),
            'server' => 'Redis protocol ' . ($this->redis->info('server')['redis_version'] ?? ''),
        ]);
    }

    private function rows(array $ratings): array
    {
        if ($ratings === []) {
            return [];
        }
        $ids = array_keys($ratings);
        $plus = $this->redis->hMGet('voting:plus', $ids);
        $minus = $this->redis->hMGet('voting:minus', $ids);
        return array_map(static fn (int $id): array => [$id, (int) $ratings[$id], (int) $plus[$id], (int) $minus[$id]], $ids);
    }

    private function script(string $script, array $arguments): mixed
    {
        $this->redis->clearLastError();
        $answer = $this->redis->evalSha(sha1($script), $arguments, 0);
        if ($answer === false && str_starts_with((string) $this->redis->getLastError(), 'NOSCRIPT')) {
            $this->redis->clearLastError();
            $answer = $this->redis->eval($script, $arguments, 0);
        }
        if ($answer === false) {
            throw new RuntimeException('a script failed: ' . $this->redis->getLastError());
        }
        return $answer;
    }

    /** Does it; again on a new connection if the one from before turns out to be dead. Scripts count a ballot once, however often it comes. */
    private function once_more(callable $work): mixed
    {
        for ($try = 1;; $try++) {
            try {
                $this->connect($try > 1);
                return $work();
            } catch (RedisException $error) {
                $this->redis = null;
                if ($try === 2 || !$this->persistent) {
                    throw new StoreAway($error->getMessage(), 0, $error);
                }
            }
        }
    }

    private function connect(bool $anew): void
    {
        if ($this->redis !== null) {
            return;
        }
        [$host, $port] = str_starts_with($this->address, '/') ? [$this->address, 0] : explode(':', $this->address, 2);
        $redis = new Redis();
        if ($this->persistent && !$anew) {
            $redis->pconnect($host, (int) $port, 5.0);
        } else {
            $redis->connect($host, (int) $port, 5.0);
        }
        $redis->setOption(Redis::OPT_READ_TIMEOUT, 5.0);
        if ($this->password !== '') {
            $redis->auth($this->password);
        }
        $this->redis = $redis;
    }

    /** Makes the stickers that are not there yet: for the first start. */
    public function add_stickers(): void
    {
        $this->connect(false);
        $arguments = [];
        for ($id = 1; $id <= self::STICKERS; $id++) {
            array_push($arguments, 0, (string) $id);
        }
        $this->redis->zAdd('voting:rating', ['NX'], ...$arguments);
    }
}
