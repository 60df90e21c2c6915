<?php
declare(strict_types=1);

/** The procedures of voting.lua through the binary protocol. */
final class TarantoolStore implements Store
{
    /** Errors of a database that starts and has its users and procedures not yet, or that cannot write just now: by and by it will. */
    private const FOR_NOW = [7 => 'READONLY', 33 => 'NO_SUCH_PROC', 40 => 'WAL_IO', 42 => 'ACCESS_DENIED', 45 => 'NO_SUCH_USER', 116 => 'LOADING'];

    public function __construct(private Iproto $connection)
    {
    }

    public function page(?string $cookie, string $token): array
    {
        [$id, $secret] = parse_cookie($cookie) ?? [null, null];
        $fresh = fresh_secret();
        [$id, $is_new, $left, $right] = $this->call('voting.page', [$id, $secret, $fresh, $token]);
        return ['cookie' => $id . '-' . ($is_new ? $fresh : $secret), 'is_new' => $is_new, 'left' => $left, 'right' => $right];
    }

    public function vote(?string $cookie, string $token, int $choice): string
    {
        $session = parse_cookie($cookie);
        return $session === null ? 'no session' : $this->call('voting.vote', [...$session, $token, $choice])[0];
    }

    public function best(int $limit): array
    {
        return $this->call('voting.best', [$limit])[0];
    }

    public function worst(int $limit): array
    {
        return $this->call('voting.worst', [$limit])[0];
    }

    public function about(): array
    {
        return $this->call('voting.about', [])[0];
    }

    private function call(string $name, array $arguments): array
    {
        try {
            return $this->connection->call($name, $arguments);
        } catch (IprotoGone $gone) {
            throw new StoreAway($gone->getMessage(), 0, $gone);
        } catch (IprotoError $error) {
            if (isset(self::FOR_NOW[$error->getCode()])) {
                throw new StoreAway($error->getMessage(), 0, $error);
            }
            throw $error;
        }
    }
}
