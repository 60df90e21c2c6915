<?php
declare(strict_types=1);

// Makes the stickers in the database of the version that talks Redis' protocol. VOTING_ADDRESS and VOTING_PASSWORD say where, as for the pages.
require __DIR__ . '/web/store.php';

putenv('VOTING_STORE=redis');
$store = open_store();
assert($store instanceof RedisStore);
$store->add_stickers();
