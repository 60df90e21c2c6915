<?php
declare(strict_types=1);

require __DIR__ . '/sticker.php';
require __DIR__ . '/pages.php';
require __DIR__ . '/store.php';

const LISTED = 20;
const COOKIE = 'voter';

function answer(int $status, string $page): void
{
    http_response_code($status);
    echo $page;
}

/** What the form says: its token and the choice, or null if no page of ours has such a form. */
function posted_vote(): ?array
{
    $token = $_POST['token'] ?? null;
    $choice = $_POST['choice'] ?? null;
    if (!is_string($token) || !preg_match('/^[A-Za-z0-9_-]{22}$/D', $token) || ($choice !== '1' && $choice !== '2')) {
        return null;
    }
    return [$token, (int) $choice];
}

/** Whether the form comes from a page of another site. Its token alone would stop that, too; browsers that say where they are sent from are believed. */
function comes_from_elsewhere(): bool
{
    $origin = $_SERVER['HTTP_ORIGIN'] ?? null;
    $fetch = $_SERVER['HTTP_SEC_FETCH_SITE'] ?? 'same-origin';
    if ($origin !== null && $origin !== 'null' && preg_replace('#^https?://#', '', $origin) !== ($_SERVER['HTTP_HOST'] ?? '')) {
        return true;
    }
    return $fetch !== 'same-origin' && $fetch !== 'none';
}

function serve(string $method, string $path): void
{
    $cookie = isset($_COOKIE[COOKIE]) && is_string($_COOKIE[COOKIE]) ? $_COOKIE[COOKIE] : null;
    if ($path === '/vote') {
        if ($method !== 'POST') {
            header('Allow: POST');
            answer(405, error_page('Not like this', 'A vote is sent by the form on the first page.'));
            return;
        }
        $vote = posted_vote();
        if ($vote === null || comes_from_elsewhere()) {
            answer(400, error_page('Not counted', 'This is no vote that our page has sent.'));
            return;
        }
        try {
            $result = open_store()->vote($cookie, ...$vote);
        } catch (StoreAway $away) {
            error_log($away->getMessage());
            header('Retry-After: 1');
            answer(503, away_page(...$vote));
            return;
        }
        $said = ['counted' => 'counted', 'counted before' => 'before', 'no ballot' => 'old', 'no session' => 'session'][$result];
        // Elsewhere after a POST: neither the back button nor a reload sends it again.
        header('Location: /?said=' . $said, true, 303);
        return;
    }
    if ($method !== 'GET' && $method !== 'HEAD') {
        header('Allow: GET, HEAD');
        answer(405, error_page('Not like this', 'This page can only be read.'));
        return;
    }
    switch ($path) {
        case '/':
            $token = fresh_secret();
            $shown = open_store()->page($cookie, $token);
            if ($shown['is_new']) {
                setcookie(COOKIE, $shown['cookie'], [
                    'path' => '/', 'httponly' => true, 'samesite' => 'Lax', 'secure' => ($_SERVER['HTTPS'] ?? '') === 'on',
                ]);
            }
            $said = $_GET['said'] ?? '';
            answer(200, voting_page($shown['left'], $shown['right'], $token, is_string($said) ? $said : ''));
            return;
        case '/best':
            answer(200, list_page('The best', $path, open_store()->best(LISTED)));
            return;
        case '/worst':
            answer(200, list_page('The worst', $path, open_store()->worst(LISTED)));
            return;
        case '/about':
            answer(200, about_page(open_store()->about()));
            return;
        default:
            answer(404, error_page('Not here', 'There is no such page.'));
    }
}

header('Content-Type: text/html; charset=utf-8');
// Back and forward ask anew: a page with a ballot is for one look. (`no-store` would also keep browsers from showing the page they left.)
header('Cache-Control: private, no-cache');
header("Content-Security-Policy: default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'");
header('X-Content-Type-Options: nosniff');
header('Referrer-Policy: same-origin');
header_remove('X-Powered-By');
try {
    serve($_SERVER['REQUEST_METHOD'], (string) parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH));
} catch (StoreAway $away) {
    error_log($away->getMessage());
    header('Retry-After: 1');
    answer(503, away_page(null, null));
} catch (Throwable $error) {
    error_log((string) $error);
    answer(500, error_page('Something is broken', 'The fault is ours; it has been noted.'));
}
