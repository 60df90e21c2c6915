-- What visitors do, for wrk with one connection a thread: a page, a vote on it, four times; then the best or the worst. Each thread is one visitor with a
-- session of its own. Prints one line of JSON at the end.

local threads = {}

function setup(thread)
    table.insert(threads, thread)
end

local GET = {}
local step, cookie, token = 0, nil, nil
counted, pages, lists, wrong, first_wrong = 0, 0, 0, 0, ''

local function get(path)
    if cookie == nil then
        return wrk.format('GET', path)
    end
    GET.Cookie = cookie
    return wrk.format('GET', path, GET)
end

local POST = { ['Content-Type'] = 'application/x-www-form-urlencoded' }

function request()
    step = step + 1
    local place = step % 10
    if place == 9 then
        return get('/best')
    elseif place == 0 then
        return get('/worst')
    elseif place % 2 == 0 and token ~= nil then
        POST.Cookie = cookie
        local body = 'token=' .. token .. '&choice=' .. (1 + step / 2 % 2)
        token = nil
        return wrk.format('POST', '/vote', POST, body)
    end
    return get('/')
end

function response(status, headers, body)
    if status == 303 and headers.Location == '/?said=counted' then
        counted = counted + 1
        return
    end
    if status == 200 then
        local set = headers['Set-Cookie']
        if set ~= nil then
            cookie = set:match('^[^;]*')
        end
        local its_token = body:match('name="token" value="([^"]*)"')
        if its_token ~= nil then
            token = its_token
            pages = pages + 1
        else
            lists = lists + 1
        end
        return
    end
    wrong = wrong + 1
    if first_wrong == '' then
        first_wrong = status .. ' ' .. (headers.Location or '')
    end
end

function done(summary, latency, requests)
    local sums = { counted = 0, pages = 0, lists = 0, wrong = 0 }
    local what = ''
    for _, thread in ipairs(threads) do
        for key, sum in pairs(sums) do
            sums[key] = sum + thread:get(key)
        end
        if thread:get('first_wrong') ~= '' then
            what = thread:get('first_wrong')
        end
    end
    local errors = summary.errors
    print(string.format('{"requests": %d, "seconds": %f, "counted": %d, "pages": %d, "lists": %d, "wrong": %d, "first_wrong": "%s", '
        .. '"socket_errors": %d, "of_them": "connect %d, read %d, write %d, timeout %d", "p50_ms": %f, "p99_ms": %f, "max_ms": %f}',
        summary.requests, summary.duration / 1e6, sums.counted, sums.pages, sums.lists, sums.wrong, what,
        errors.connect + errors.read + errors.write + errors.timeout, errors.connect, errors.read, errors.write, errors.timeout,
        latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3))
end
