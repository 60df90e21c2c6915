<?php
declare(strict_types=1);

/** No database at all: the same pages from constants. It is there to be measured, and counts nothing. */
final class NoStore implements Store
{
    private const COUNT = 1024;

    public function page(?string $cookie, string $token): array
    {
        $session = parse_cookie($cookie);
        return [
            'cookie' => $session === null ? '1-' . fresh_secret() : $cookie,
            'is_new' => $session === null,
            'left' => mt_rand(1, self::COUNT / 2),
            'right' => mt_rand(self::COUNT / 2 + 1, self::COUNT),
        ];
    }

    public function vote(?string $cookie, string $token, int $choice): string
    {
        return parse_cookie($cookie) === null ? 'no session' : 'counted';
    }

    public function best(int $limit): array
    {
        return array_map(static fn (int $id): array => [$id, 0, 0, 0], range(1, $limit));
    }

    public function worst(int $limit): array
    {
        return $this->best($limit);
    }

    public function about(): array
    {
        return ['stickers' => self::COUNT, 'votes' => 0, 'sessions' => 0, 'server' => 'none'];
    }
}
