<?php
declare(strict_types=1);

/** Every page of the service, as text. Whatever comes from outside goes through `escape`. */

function escape(string $text): string
{
    return htmlspecialchars($text, ENT_QUOTES | ENT_SUBSTITUTE, 'UTF-8');
}

function page(string $title, string $content, string $here = ''): string
{
    $links = '';
    foreach (['/' => 'Vote', '/best' => 'Best', '/worst' => 'Worst', '/about' => 'About'] as $path => $text) {
        $links .= '<a href="' . $path . '"' . ($path === $here ? ' aria-current="page"' : '') . '>' . $text . '</a>';
    }
    return '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        . '<title>' . escape($title) . ' – Sticker battle</title><link rel="stylesheet" href="/style.css"><link rel="icon" href="/icon.svg"></head>'
        . '<body><header><p class="name">Sticker battle</p><nav>' . $links . '</nav></header><main>' . $content . '</main></body></html>';
}

/** Two stickers, each the button that votes for it. */
function voting_page(int $left, int $right, string $token, string $said): string
{
    $said = match ($said) {
        'counted' => '<p class="said" role="status">Your vote is counted. The next two:</p>',
        'before' => '<p class="said" role="status">That vote was counted already. The next two:</p>',
        'old' => '<p class="said" role="status">Those two were on the table for too long. Here are others:</p>',
        'session' => '<p class="said" role="status">Your session had ended; a new one has begun. Please vote on these:</p>',
        default => '<p class="said">Tap the one you like better.</p>',
    };
    $buttons = '';
    foreach ([1 => $left, 2 => $right] as $choice => $id) {
        $buttons .= '<button name="choice" value="' . $choice . '">' . Sticker::svg($id) . '<span>' . Sticker::name($id) . '</span></button>';
    }
    return page('Vote', '<h1>Which one?</h1>' . $said . '<form method="post" action="/vote" class="pair"><input type="hidden" name="token" value="'
        . escape($token) . '">' . $buttons . '</form>', '/');
}

/** @param list<array{int, int, int, int}> $rows */
function list_page(string $title, string $here, array $rows): string
{
    $items = '';
    foreach ($rows as [$id, $rating, $plus, $minus]) {
        $items .= '<li>' . Sticker::svg($id) . '<span class="what">' . Sticker::name($id) . '<small>No. ' . $id . '</small></span><span class="rating">'
            . ($rating > 0 ? '+' : '') . ($rating < 0 ? '−' . -$rating : $rating) . '<small>' . $plus . ' for, ' . $minus . ' against</small></span></li>';
    }
    return page($title, '<h1>' . escape($title) . '</h1><ol class="list">' . $items . '</ol>', $here);
}

function about_page(array $about): string
{
    $figures = '';
    foreach (['stickers' => 'stickers', 'votes' => 'votes', 'sessions' => 'sessions'] as $key => $text) {
        $figures .= '<div><dt>' . $text . '</dt><dd>' . number_format($about[$key]) . '</dd></div>';
    }
    return page('About', '<h1>About</h1><dl class="figures">' . $figures . '</dl>'
        . '<p>Two stickers at a time, drawn by chance. The one you choose gets a point, the other one loses one. A vote counts once: pressing the button again, '
        . 'going back, or a server that is restarted in the middle of it does not count it a second time, and what was counted is on disk.</p>'
        . '<p>A cookie holds the number and the secret of your session until you close the browser, and nothing else about you; a session ends a day after its last page.</p>'
        . '<p class="small">Database: ' . escape($about['server']) . '</p>', '/about');
}

/** The database is away. A vote that was on its way is kept in the page and can be sent again: it counts once. */
function away_page(?string $token, ?int $choice): string
{
    $again = $token === null
        ? '<p><a class="button" href="/">Try again</a></p>'
        : '<form method="post" action="/vote"><input type="hidden" name="token" value="' . escape($token) . '">'
            . '<button class="button" name="choice" value="' . $choice . '">Send the vote again</button></form>';
    return page('One moment', '<h1>One moment</h1><p>The database cannot be reached just now. It will be back soon'
        . ($token === null ? '.' : '; your vote is kept here, and counts once even if it had arrived.') . '</p>' . $again);
}

function error_page(string $title, string $text): string
{
    return page($title, '<h1>' . escape($title) . '</h1><p>' . escape($text) . '</p><p><a class="button" href="/">To the stickers</a></p>');
}
