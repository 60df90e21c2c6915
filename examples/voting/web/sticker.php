<?php
declare(strict_types=1);

/**
 * Stickers, drawn from their number: 4,096 different ones. Neighbours in number look nothing alike.
 */
final class Sticker
{
    public const COUNT = 4096;

    /** Outlines in a square of 200. */
    private const BODIES = [
        'Moon' => '<circle cx="100" cy="100" r="72"/>',
        'Toast' => '<rect x="32" y="36" width="136" height="132" rx="38"/>',
        'Ghost' => '<path d="M36 172V96a64 64 0 0 1 128 0v76l-21-17-21 17-22-17-21 17-21-17z"/>',
        'Drop' => '<path d="M100 22c32 42 64 66 64 100a64 56 0 0 1-128 0c0-34 32-58 64-100z"/>',
        'Cloud' => '<path d="M58 164a38 38 0 0 1-10-75 54 54 0 0 1 100-22 44 44 0 0 1 2 97z"/>',
        'Gem' => '<path d="M62 34h76l34 56-72 84-72-84z"/>',
        'Star' => '<path d="M100 24l22 44 50 6-36 36 9 50-45-24-45 24 9-50-36-36 50-6z"/>',
        'Pear' => '<path d="M100 26c26 0 34 20 36 44 2 20 30 34 30 64 0 26-28 42-66 42s-66-16-66-42c0-30 28-44 30-64 2-24 10-44 36-44z"/>',
    ];

    private const EYES = [
        'Curious' => '<g fill="#fff"><circle cx="78" cy="94" r="15"/><circle cx="122" cy="94" r="15"/></g><circle cx="81" cy="96" r="7"/><circle cx="125" cy="96" r="7"/>',
        'Plain' => '<circle cx="78" cy="96" r="8"/><circle cx="122" cy="96" r="8"/>',
        'Sleepy' => '<path d="M66 96q12 12 24 0m20 0q12 12 24 0" fill="none" stroke="#2b2540" stroke-width="6" stroke-linecap="round"/>',
        'Happy' => '<path d="M66 100q12-16 24 0m20 0q12-16 24 0" fill="none" stroke="#2b2540" stroke-width="6" stroke-linecap="round"/>',
        'Grumpy' => '<path d="M64 80l26 10m46-10l-26 10" stroke="#2b2540" stroke-width="6" stroke-linecap="round"/><circle cx="79" cy="100" r="7"/><circle cx="121" cy="100" r="7"/>',
        'Winking' => '<circle cx="78" cy="96" r="9"/><path d="M110 97h24" stroke="#2b2540" stroke-width="6" stroke-linecap="round"/>',
        'Cyclopic' => '<circle cx="100" cy="92" r="22" fill="#fff"/><circle cx="103" cy="95" r="10"/>',
        'Dizzy' => '<path d="M68 88l18 18m0-18l-18 18m46-18l18 18m0-18l-18 18" stroke="#2b2540" stroke-width="6" stroke-linecap="round"/>',
    ];

    private const MOUTHS = [
        'Smiling' => '<path d="M80 124q20 20 40 0" fill="none" stroke="#2b2540" stroke-width="6" stroke-linecap="round"/>',
        'Sad' => '<path d="M82 136q18-16 36 0" fill="none" stroke="#2b2540" stroke-width="6" stroke-linecap="round"/>',
        'Laughing' => '<path d="M76 120h48a24 24 0 0 1-48 0z"/><path d="M88 137q12-9 24 0-12 8-24 0z" fill="#ff6b81"/>',
        'Singing' => '<ellipse cx="100" cy="130" rx="10" ry="13"/>',
        'Quiet' => '<path d="M86 130h28" stroke="#2b2540" stroke-width="6" stroke-linecap="round"/>',
        'Cheeky' => '<path d="M80 124h40" stroke="#2b2540" stroke-width="6" stroke-linecap="round"/><path d="M100 125h16v8a8 8 0 0 1-16 0z" fill="#ff6b81"/>',
        'Toothy' => '<rect x="80" y="120" width="40" height="18" rx="7" fill="#fff" stroke="#2b2540" stroke-width="5"/><path d="M93 120v18m14-18v18" stroke="#2b2540" stroke-width="3"/>',
        'Wavy' => '<path d="M78 130q7-10 14 0t14 0 14 0" fill="none" stroke="#2b2540" stroke-width="5" stroke-linecap="round"/>',
    ];

    private const COLOURS = [
        'Coral' => '#ff8a75', 'Amber' => '#ffc145', 'Lime' => '#b6d94c', 'Mint' => '#5ed6a8',
        'Sky' => '#6cb8f6', 'Violet' => '#a78bfa', 'Pink' => '#f78fc2', 'Sand' => '#e2c59f',
    ];

    /** Which outline, eyes, mouth and colour a number has: each of 4,096 combinations once. */
    private static function parts(int $id): array
    {
        $mixed = ($id * 2237 + 811) % self::COUNT;
        return [$mixed & 7, ($mixed >> 3) & 7, ($mixed >> 6) & 7, ($mixed >> 9) & 7];
    }

    public static function name(int $id): string
    {
        [$body, $eyes, $mouth, $colour] = self::parts($id);
        return array_keys(self::MOUTHS)[$mouth] . ' ' . lcfirst(array_keys(self::EYES)[$eyes]) . ' ' . lcfirst(array_keys(self::COLOURS)[$colour])
            . ' ' . lcfirst(array_keys(self::BODIES)[$body]);
    }

    /** The drawing; whoever puts it on a page says its name beside it. */
    public static function svg(int $id): string
    {
        [$body, $eyes, $mouth, $colour] = self::parts($id);
        $outline = array_values(self::BODIES)[$body];
        return '<svg viewBox="0 0 200 200" aria-hidden="true">'
            . '<g fill="#fff" stroke="#fff" stroke-width="20" stroke-linejoin="round" class="rim">' . $outline . '</g>'
            . '<g fill="' . array_values(self::COLOURS)[$colour] . '">' . $outline . '</g>'
            . '<g fill="#2b2540">' . array_values(self::EYES)[$eyes] . array_values(self::MOUTHS)[$mouth] . '</g>'
            . '</svg>';
    }
}
