<?php
declare(strict_types=1);

/** The database cannot be reached just now. What was asked for may have been done or not, and may be asked for again. */
final class StoreAway extends RuntimeException
{
}

/** What the pages need of a database. */
interface Store
{
    /**
     * Two stickers and a ballot for them, in the session that the cookie names, or else in a new one.
     * @return array{cookie: string, is_new: bool, left: int, right: int}
     */
    public function page(?string $cookie, string $token): array;

    /** Counts a vote; 'counted', 'counted before', 'no ballot' or 'no session'. */
    public function vote(?string $cookie, string $token, int $choice): string;

    /** @return list<array{int, int, int, int}> number, rating, plus, minus, the best first */
    public function best(int $limit): array;

    /** The same, the worst first. */
    public function worst(int $limit): array;

    /** @return array{stickers: int, votes: int, sessions: int, server: string} */
    public function about(): array;
}

/** The store that the environment names: VOTING_STORE is tarantool, redis or none. */
function open_store(): Store
{
    $address = getenv('VOTING_ADDRESS') ?: '127.0.0.1:3301';
    $persistent = getenv('VOTING_CONNECT') !== 'each';
    $password = getenv('VOTING_PASSWORD') ?: '';
    switch (getenv('VOTING_STORE') ?: 'tarantool') {
        case 'tarantool':
            require_once __DIR__ . '/iproto.php';
            require_once __DIR__ . '/tarantool_store.php';
            return new TarantoolStore(new Iproto($address, 'web', $password, $persistent));
        case 'redis':
            require_once __DIR__ . '/redis_store.php';
            return new RedisStore($address, $password, $persistent, (int) (getenv('VOTING_SESSION_SECONDS') ?: 86400));
        case 'none':
            require_once __DIR__ . '/no_store.php';
            return new NoStore();
        default:
            throw new LogicException('VOTING_STORE is neither tarantool nor redis nor none');
    }
}

/** Bytes that nobody guesses, as 22 characters that may stand in cookies and forms. */
function fresh_secret(): string
{
    return rtrim(strtr(base64_encode(random_bytes(16)), '+/', '-_'), '=');
}

/** A cookie's two parts, number and secret of the session; null if it is no cookie of ours. */
function parse_cookie(?string $cookie): ?array
{
    if ($cookie === null || !preg_match('/^([0-9]{1,18})-([A-Za-z0-9_-]{22})$/D', $cookie, $parts)) {
        return null;
    }
    return [(int) $parts[1], $parts[2]];
}
