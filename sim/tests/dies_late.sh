#!/bin/sh
# Stands for `sim run-seeds --first N --count M`: a line for each seed, and death behind the last one.
seed=$3
end=$((seed + $5))
while [ "$seed" -lt "$end" ]; do
    echo "{\"seed\":$seed,\"hash\":1,\"workloads\":[],\"operations\":0,\"acknowledged\":0,\"refused\":0,\"unknown\":0,\"steps\":0,\"simulated_ns\":0,\"reached\":{},\"violation\":null}"
    seed=$((seed + 1))
done
echo 'last words' >&2
kill -ABRT $$
