-- datetime: moments with a time zone, and intervals between them, cdata of their own types.
--
-- A moment is counted in UTC; its offset says what a clock shows there. Dates are computed on the clock's time, and for a zone with rules the offset is
-- looked up anew for the result.
local internal = ...

local ffi = require('ffi')

local datetime_type, interval_type = internal.types.datetime, internal.types.interval
local floor = math.floor

local DAY_S = 86400
local MIN_YEAR, MAX_YEAR = -5879610, 5879611
local MIN_DAYS, MAX_DAYS = -2148202811, 2146764484
local MIN_TEXT, MAX_TEXT = '-5879610-06-22', '5879611-07-11'
local YEARS = MAX_YEAR - MIN_YEAR
local DAYS = YEARS * 365.25
local ADJUST = { excess = 0, none = 1, last = 2 }
local ADJUST_NAMES = { [0] = 'excess', [1] = 'none', [2] = 'last' }
-- Fields of intervals in their order, and the largest value of each.
local FIELDS = { 'year', 'month', 'week', 'day', 'hour', 'min', 'sec', 'nsec' }
local RANGES = {
    year = YEARS, month = YEARS * 12, week = YEARS * (365.25 / 7), day = DAYS, hour = DAYS * 24, min = DAYS * 24 * 60,
    sec = DAYS * DAY_S, nsec = 2147483647, usec = 2147483, msec = 2147,
}
local MONTHS = {
    'January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December',
}
local WEEKDAYS = { 'Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday' }

local function is_datetime(value) return ffi.istype(datetime_type, value) end
local function is_interval(value) return ffi.istype(interval_type, value) end

-- The calendar -------------------------------------------------------------------------------------------------------------
local function is_leap(year)
    return year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
end

local MONTH_DAYS = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }
local function days_in_month(year, month)
    return month == 2 and is_leap(year) and 29 or MONTH_DAYS[month]
end

-- Days since 1970. Years begin in March here, so the day that some have more is their last.
local function days_of(year, month, day)
    local y = month <= 2 and year - 1 or year
    local shifted = month > 2 and month - 3 or month + 9
    local era = floor(y / 400)
    local of_era = y - era * 400
    local of_year = floor((153 * shifted + 2) / 5) + day - 1
    return era * 146097 + of_era * 365 + floor(of_era / 4) - floor(of_era / 100) + of_year - 719468
end

local function date_of(days)
    local shifted = days + 719468
    local era = floor(shifted / 146097)
    local of_era = shifted - era * 146097
    local year = floor((of_era - floor(of_era / 1460) + floor(of_era / 36524) - floor(of_era / 146096)) / 365)
    local of_year = of_era - (365 * year + floor(year / 4) - floor(year / 100))
    local month = floor((5 * of_year + 2) / 153)
    local day = of_year - floor((153 * month + 2) / 5) + 1
    month = month < 10 and month + 3 or month - 9
    return era * 400 + year + (month <= 2 and 1 or 0), month, day
end

-- Checks ---------------------------------------------------------------------------------------------------------------------
local function check_table(value, what)
    if type(value) ~= 'table' then
        error(('%s: expected table, but received %s'):format(what, type(value)), 3)
    end
end

local function check_text(value, what)
    if type(value) ~= 'string' then
        error(('%s: expected string, but received %s'):format(what, type(value)), 3)
    end
end

local function check_datetime(value, what)
    if not is_datetime(value) then
        error(('%s: expected datetime, but received %s'):format(what, type(value)), 3)
    end
end

local function check_range(value, from, to, name, extra)
    if value == nil then
        return nil
    elseif type(value) ~= 'number' then
        error(('numeric value expected, but received %s'):format(type(value)), 4)
    elseif not (extra == value or value >= from and value <= to) then
        if extra then
            error(('value %d of %s is out of allowed range [%d, %d..%d]'):format(value, name, extra, from, to), 4)
        end
        error(('value %d of %s is out of allowed range [%d, %d]'):format(value, name, from, to), 4)
    elseif value % 1 ~= 0 then
        error(('%s: integer value expected, but received %s'):format(name, type(value)), 4)
    end
    return value
end

local function check_month_day(year, month, day)
    local last = days_in_month(year, month)
    if day < 0 then
        return last
    elseif day > last then
        error(('invalid number of days %d in month %d for %d'):format(day, month, year), 4)
    end
    return day
end

local function check_days(days, year, month, day)
    if days < MIN_DAYS or days > MAX_DAYS then
        error(('date %4d-%02d-%02d is invalid'):format(year, month, day), 4)
    end
    return days
end

-- Nanoseconds of one of the three fields that may say so; nil if none does.
local function fraction_of(given)
    local nsec, usec, msec = given.nsec, given.usec, given.msec
    if (nsec ~= nil and 1 or 0) + (usec ~= nil and 1 or 0) + (msec ~= nil and 1 or 0) > 1 then
        error('only one of nsec, usec or msecs may be defined simultaneously', 3)
    elseif usec ~= nil then
        return check_range(usec, 0, 1e6, 'usec') * 1e3
    elseif msec ~= nil then
        return check_range(msec, 0, 1e3, 'msec') * 1e6
    elseif nsec ~= nil then
        return check_range(nsec, 0, 1e9, 'nsec')
    end
    return nil
end

-- Zones ------------------------------------------------------------------------------------------------------------------------
-- An offset in minutes from `+hh`, `+hhmm`, `+hh:mm` or `Z`, and how many bytes it has; nil if a text does not begin so.
local function parse_offset(text)
    if text:match('^[Zz]') and not text:match('^%a[%a/]') then
        return 0, 1
    end
    local sign, hours, minutes = text:match('^([+-])(%d%d):?(%d%d)')
    local length = sign and #text:match('^[+-]%d%d:?%d%d')
    if not sign then
        sign, hours = text:match('^([+-])(%d%d?)')
        length, minutes = sign and 1 + #hours, '0'
    end
    if not sign or tonumber(minutes) > 59 then
        return nil
    end
    local offset = tonumber(hours) * 60 + tonumber(minutes)
    return sign == '-' and -offset or offset, length
end

local function offset_of(given)
    if given == nil then
        return nil
    elseif type(given) == 'string' then
        local offset, length = parse_offset(given)
        if offset == nil or length ~= #given then
            error(('invalid time-zone format %s'):format(given), 4)
        end
        given = offset
    elseif type(given) ~= 'number' then
        error(('tzoffset: string or number expected, but received %s'):format(tostring(given)), 4)
    end
    return check_range(given, -720, 840, 'tzoffset')
end

-- The number of a zone and its offset while a clock there shows so many seconds. Raises if there is none.
local function zone_of(name, local_seconds)
    check_text(name, 'parse_tzname()')
    local number, is_ambiguous = internal.datetime_zone(name)
    if number == nil then
        local offset, length = parse_offset(name)
        if offset and length == #name then
            return 0, offset
        end
        error(("could not parse '%s'"):format(name), 4)
    elseif is_ambiguous then
        error(("could not parse '%s' - ambiguous timezone"):format(name), 4)
    end
    local offset = internal.datetime_offset(number, local_seconds, true)
    if offset == nil then
        error(("could not parse '%s' - nyi timezone"):format(name), 4)
    end
    return number, offset
end

-- Moments ------------------------------------------------------------------------------------------------------------------------
local function make(epoch, nsec, offset, zone)
    return datetime_type(epoch, nsec, offset or 0, zone or 0)
end

local function check_moment(epoch, direction)
    local days = floor(epoch / DAY_S)
    if days < MIN_DAYS then
        error(('%s makes date less than minimum allowed %s'):format(direction > 0 and 'addition' or 'subtraction', MIN_TEXT), 4)
    elseif days > MAX_DAYS then
        error(('%s makes date greater than maximum allowed %s'):format(direction > 0 and 'addition' or 'subtraction', MAX_TEXT), 4)
    end
end

local function local_seconds(self)
    return self.epoch + self.tzoffset * 60
end

local function ymd_of(given)
    local year = check_range(given.year, MIN_YEAR, MAX_YEAR, 'year')
    local month = check_range(given.month, 1, 12, 'month')
    local day = check_range(given.day, 1, 31, 'day', -1)
    return year, month, day, year ~= nil or month ~= nil or day ~= nil
end

local function hms_of(given)
    local hour = check_range(given.hour, 0, 23, 'hour')
    local min = check_range(given.min, 0, 59, 'min')
    local sec = check_range(given.sec, 0, 60, 'sec')
    return hour, min, sec, hour ~= nil or min ~= nil or sec ~= nil
end

-- Whole seconds and nanoseconds of a timestamp beside which nothing else may say them.
local function timestamp_of(given, has_date, has_time, nsec)
    local timestamp = given.timestamp
    if timestamp == nil then
        return nil
    elseif has_date then
        error('timestamp is not allowed if year/month/day provided', 3)
    elseif has_time then
        error('timestamp is not allowed if hour/min/sec provided', 3)
    elseif type(timestamp) ~= 'number' then
        error(("bad timestamp ('number' expected, got '%s')"):format(type(timestamp)), 3)
    end
    local days = floor(timestamp / DAY_S)
    if not (days >= MIN_DAYS and days <= MAX_DAYS) then
        error('timestamp is out of the range of dates', 3)
    end
    local whole = floor(timestamp)
    if nsec ~= nil and whole ~= timestamp then
        error('only integer values allowed in timestamp if nsec, usec, or msecs provided', 3)
    end
    return whole, nsec or (timestamp - whole) * 1e9
end

local function new(given)
    if given == nil then
        return make(0, 0)
    end
    check_table(given, 'datetime.new()')
    local year, month, day, has_date = ymd_of(given)
    local hour, min, sec, has_time = hms_of(given)
    local nsec = fraction_of(given)
    local seconds, fraction = timestamp_of(given, has_date, has_time, nsec)
    local offset, zone = offset_of(given.tzoffset) or 0, 0
    if seconds == nil then
        year, month = year or 1970, month or 1
        day = check_month_day(year, month, day or 1)
        seconds = check_days(days_of(year, month, day), year, month, day) * DAY_S
            + (hour or 0) * 3600 + (min or 0) * 60 + (sec or 0)
    end
    if given.tz ~= nil then
        zone, offset = zone_of(given.tz, seconds)
    end
    return make(seconds - offset * 60, fraction or nsec or 0, offset, zone)
end

local function set(self, given)
    check_datetime(self, 'datetime.set()')
    check_table(given, 'datetime.set()')
    local year, month, day, has_date = ymd_of(given)
    local hour, min, sec, has_time = hms_of(given)
    local nsec = fraction_of(given)
    local seconds, fraction = timestamp_of(given, has_date, has_time, nsec)
    local offset, zone = offset_of(given.tzoffset), 0
    if offset == nil then
        offset, zone = self.tzoffset, self.tzindex
    end
    if seconds == nil then
        local shown = local_seconds(self)
        local days, second = floor(shown / DAY_S), shown % DAY_S
        if has_date then
            local y, m, d = date_of(days)
            y, m = year or y, month or m
            d = check_month_day(y, m, day or d)
            days = check_days(days_of(y, m, d), y, m, d)
        end
        if has_time then
            second = (hour or floor(second / 3600)) * 3600 + (min or floor(second / 60) % 60) * 60 + (sec or second % 60)
        end
        seconds = days * DAY_S + second
    end
    if given.tz ~= nil then
        zone, offset = zone_of(given.tz, seconds)
    elseif zone ~= 0 then
        offset = internal.datetime_offset(zone, seconds, true) or offset
    end
    self.epoch, self.nsec = seconds - offset * 60, fraction or nsec or self.nsec
    self.tzoffset, self.tzindex = offset, zone
    return self
end

local function now()
    local nanoseconds = require('clock').realtime64()
    local seconds = tonumber(nanoseconds / 1000000000ULL)
    return make(seconds, tonumber(nanoseconds % 1000000000ULL), internal.datetime_here(seconds))
end

-- Intervals ------------------------------------------------------------------------------------------------------------------------
local function checked_field(given, name)
    local value, max = given[name], RANGES[name]
    if value == nil then
        return 0
    elseif type(value) ~= 'number' then
        error(('numeric value expected, but received %s'):format(type(value)), 4)
    elseif not (value >= -max and value <= max) then
        error(('value %s of %s is out of allowed range [%s, %s]'):format(value, name, -max, max), 4)
    elseif value % 1 ~= 0 then
        error(('%s: integer value expected, but received %s'):format(name, type(value)), 4)
    end
    return value
end

local function interval_of(given)
    if is_interval(given) then
        return given
    end
    local result = interval_type()
    for at = 1, 7 do
        result[FIELDS[at]] = checked_field(given, FIELDS[at])
    end
    if (given.nsec ~= nil and 1 or 0) + (given.usec ~= nil and 1 or 0) + (given.msec ~= nil and 1 or 0) > 1 then
        error('only one of nsec, usec or msecs may be defined simultaneously', 3)
    end
    result.nsec = checked_field(given, 'nsec') + checked_field(given, 'usec') * 1e3 + checked_field(given, 'msec') * 1e6
    result.adjust = ADJUST[given.adjust] or ADJUST.none
    return result
end

local function new_interval(given)
    if given ~= nil then
        check_table(given, 'interval.new()')
    end
    return interval_of(given or {})
end

local function combine(left, right, direction)
    local result = interval_type()
    for _, name in ipairs(FIELDS) do
        local value, max = left[name] + direction * right[name], RANGES[name]
        if value < -max or value > max then
            error(('%s moves value %s of %s out of allowed range [%s, %s]'):format(direction > 0 and 'addition' or 'subtraction',
                value, name, -max, max), 4)
        end
        result[name] = value
    end
    result.adjust = left.adjust
    return result
end

-- Moves a moment: years and months first, then what has a length.
local function shift(self, interval, direction)
    local shown = local_seconds(self)
    local days, second = floor(shown / DAY_S), shown % DAY_S
    local months = direction * (interval.year * 12 + interval.month)
    if months ~= 0 then
        local year, month, day = date_of(days)
        local was_last = day == days_in_month(year, month)
        local total = year * 12 + month - 1 + months
        year, month = floor(total / 12), total % 12 + 1
        check_moment(days_of(year, month, 1) * DAY_S, direction)
        local last = days_in_month(year, month)
        local adjust = tonumber(interval.adjust)
        if adjust == ADJUST.last and was_last or adjust ~= ADJUST.excess and day > last then
            day = last
        end
        days = days_of(year, month, day)
    end
    days = days + direction * (interval.week * 7 + interval.day)
    local nsec = self.nsec + direction * interval.nsec
    local seconds = days * DAY_S + second + direction * (interval.hour * 3600 + interval.min * 60 + interval.sec) + floor(nsec / 1e9)
    check_moment(seconds, direction)
    local offset = self.tzoffset
    if self.tzindex ~= 0 then
        offset = internal.datetime_offset(self.tzindex, seconds, true) or offset
    end
    self.epoch, self.nsec, self.tzoffset = seconds - offset * 60, nsec % 1e9, offset
    return self
end

local function copy(value)
    return make(value.epoch, value.nsec, value.tzoffset, value.tzindex)
end

local function parts_of(value)
    local shown = local_seconds(value)
    local days, second = floor(shown / DAY_S), shown % DAY_S
    local year, month, day = date_of(days)
    return {
        year = year, month = month, week = 0, day = day, hour = floor(second / 3600), min = floor(second / 60) % 60,
        sec = second % 60, nsec = value.nsec, adjust = ADJUST.none, days = days,
    }
end

local function difference(left, right)
    local result = combine(parts_of(left), parts_of(right), -1)
    result.min = result.min - (left.tzoffset - right.tzoffset)
    return result
end

local function kind_of(value)
    return is_datetime(value) and 'datetime' or is_interval(value) and 'interval' or type(value) == 'table' and 'table' or nil
end

local function add(left, right)
    if is_datetime(right) then
        left, right = right, left
    end
    local a, b = kind_of(left), kind_of(right)
    if a ~= 'datetime' and a ~= 'interval' then
        error(('operator +: expected datetime or interval, but received %s'):format(type(left)), 2)
    elseif b ~= 'interval' and b ~= 'table' then
        error(('operator +: expected interval or table, but received %s'):format(type(right)), 2)
    end
    right = interval_of(right)
    return a == 'datetime' and shift(copy(left), right, 1) or combine(left, right, 1)
end

local function subtract(left, right)
    local a, b = kind_of(left), kind_of(right)
    if a ~= 'datetime' and a ~= 'interval' then
        error(('operator -: expected datetime or interval, but received %s'):format(type(left)), 2)
    elseif b == nil then
        error(('operator -: expected datetime, interval or table, but received %s'):format(type(right)), 2)
    elseif b == 'datetime' then
        if a ~= 'datetime' then
            error('datetime:operator -() - incompatible type of arguments', 2)
        end
        return difference(left, right)
    end
    right = interval_of(right)
    return a == 'datetime' and shift(copy(left), right, -1) or combine(left, right, -1)
end

local function compare(left, right, is_raising)
    if not is_datetime(left) or not is_datetime(right) then
        if is_raising then
            error('incompatible types for datetime comparison', 3)
        end
        return nil
    end
    local seconds = left.epoch - right.epoch
    return seconds ~= 0 and seconds or left.nsec - right.nsec
end

local function compare_intervals(left, right, is_raising)
    if not is_interval(left) or not is_interval(right) then
        if is_raising then
            error('incompatible types for interval comparison', 3)
        end
        return nil
    end
    for _, name in ipairs(FIELDS) do
        local less = left[name] - right[name]
        if less ~= 0 then
            return less
        end
    end
    return 0
end

-- Texts ------------------------------------------------------------------------------------------------------------------------------
local function fraction_text(nsec, places)
    local text = ('%09d'):format(nsec)
    if places then
        return (text .. ('0'):rep(places)):sub(1, places)
    end
    return nsec % 1e6 == 0 and text:sub(1, 3) or nsec % 1e3 == 0 and text:sub(1, 6) or text
end

local function zone_text(self)
    return internal.datetime_zone_name(self.tzindex) or ''
end

local function offset_text(offset)
    local minutes = math.abs(offset)
    return ('%s%02d%02d'):format(offset < 0 and '-' or '+', floor(minutes / 60), minutes % 60)
end

local function weekday_of(days)
    return (days + 4) % 7
end

local function year_day_of(parts)
    return parts.days - days_of(parts.year, 1, 1) + 1
end

-- Year and number of the week that begins on Monday.
local function iso_week(parts)
    local thursday = parts.days - (weekday_of(parts.days) + 6) % 7 + 3
    local year = date_of(thursday)
    return year, floor((thursday - days_of(year, 1, 1)) / 7) + 1
end

local formats
formats = {
    a = function(p) return WEEKDAYS[weekday_of(p.days) + 1]:sub(1, 3) end,
    A = function(p) return WEEKDAYS[weekday_of(p.days) + 1] end,
    b = function(p) return MONTHS[p.month]:sub(1, 3) end,
    h = function(p) return MONTHS[p.month]:sub(1, 3) end,
    B = function(p) return MONTHS[p.month] end,
    C = function(p) return ('%02d'):format(floor(p.year / 100)) end,
    d = function(p) return ('%02d'):format(p.day) end,
    e = function(p) return ('%2d'):format(p.day) end,
    f = function(p, _, places) return fraction_text(p.nsec, places) end,
    G = function(p) return tostring((iso_week(p))) end,
    g = function(p) return ('%02d'):format(iso_week(p) % 100) end,
    H = function(p) return ('%02d'):format(p.hour) end,
    I = function(p) return ('%02d'):format((p.hour + 11) % 12 + 1) end,
    j = function(p) return ('%03d'):format(year_day_of(p)) end,
    k = function(p) return ('%2d'):format(p.hour) end,
    l = function(p) return ('%2d'):format((p.hour + 11) % 12 + 1) end,
    m = function(p) return ('%02d'):format(p.month) end,
    M = function(p) return ('%02d'):format(p.min) end,
    n = function() return '\n' end,
    p = function(p) return p.hour < 12 and 'AM' or 'PM' end,
    s = function(_, self) return ('%d'):format(self.epoch) end,
    S = function(p) return ('%02d'):format(p.sec) end,
    t = function() return '\t' end,
    u = function(p) return tostring((weekday_of(p.days) + 6) % 7 + 1) end,
    U = function(p) return ('%02d'):format(floor((year_day_of(p) + 6 - weekday_of(p.days)) / 7)) end,
    V = function(p) return ('%02d'):format((select(2, iso_week(p)))) end,
    w = function(p) return tostring(weekday_of(p.days)) end,
    W = function(p) return ('%02d'):format(floor((year_day_of(p) + 6 - (weekday_of(p.days) + 6) % 7) / 7)) end,
    y = function(p) return ('%02d'):format(p.year % 100) end,
    Y = function(p) return ('%d'):format(p.year) end,
    z = function(_, self) return offset_text(self.tzoffset) end,
    Z = function(_, self) return zone_text(self) end,
    ['%'] = function() return '%' end,
}
-- Formats that stand for others.
local COMPOUND = {
    c = '%a %b %e %H:%M:%S %Y', D = '%m/%d/%y', F = '%Y-%m-%d', r = '%I:%M:%S %p', R = '%H:%M', T = '%H:%M:%S', v = '%e-%b-%Y',
    x = '%m/%d/%y', X = '%H:%M:%S', ['+'] = '%a %b %e %H:%M:%S %Z %Y',
}

local function expand(form)
    return (form:gsub('%%([cDFrRTvxX+%%])', function(letter)
        return letter == '%' and '%%' or COMPOUND[letter]
    end))
end

local function strftime(self, form)
    local parts = parts_of(self)
    return (expand(form):gsub('%%(%d*)([%a%%])', function(places, letter)
        local write = formats[letter]
        return write and write(parts, self, tonumber(places)) or nil
    end))
end

local function format(self, form)
    check_datetime(self, 'datetime.format()')
    if form == nil then
        return internal.datetime_text(self)
    end
    check_text(form, 'datetime.strftime()')
    return strftime(self, form)
end

local function totable(self)
    check_datetime(self, 'datetime.totable()')
    local parts = parts_of(self)
    return {
        year = parts.year, month = parts.month, day = parts.day, hour = parts.hour, min = parts.min, sec = parts.sec,
        yday = year_day_of(parts), wday = weekday_of(parts.days) + 1, isdst = self.isdst, nsec = self.nsec,
        tzoffset = self.tzoffset, tz = self.tz, timestamp = self.timestamp,
    }
end

-- Reading texts ----------------------------------------------------------------------------------------------------------------------
-- Days of a date at the beginning of a text, and how many bytes it has; nil if there is none.
local function parse_date(text)
    local year, month, day = text:match('^(%d%d%d%d)%-(%d%d)%-(%d%d)')
    local length = 10
    if not year then
        year, month, day = text:match('^(%d%d%d%d)(%d%d)(%d%d)')
        length = 8
    end
    if year and not (length == 8 and text:match('^%d%d%d%d%d%d%d%d%d')) then
        year, month, day = tonumber(year), tonumber(month), tonumber(day)
        if month < 1 or month > 12 or day < 1 or day > days_in_month(year, month) then
            return nil
        end
        return days_of(year, month, day), length
    end
    local week, weekday
    for _, form in ipairs({ '^((%d%d%d%d)%-W(%d%d)%-(%d))', '^((%d%d%d%d)W(%d%d)(%d))' }) do
        local all
        all, year, week, weekday = text:match(form)
        if all then
            year, week, weekday = tonumber(year), tonumber(week), tonumber(weekday)
            if week < 1 or week > 53 or weekday < 1 or weekday > 7 then
                return nil
            end
            -- The fourth of January is always in the first week.
            local fourth = days_of(year, 1, 4)
            return fourth - (weekday_of(fourth) + 6) % 7 + (week - 1) * 7 + weekday - 1, #all
        end
    end
    for _, form in ipairs({ '^((%d%d%d%d)%-(%d%d%d))', '^((%d%d%d%d)(%d%d%d))' }) do
        local all
        all, year, day = text:match(form)
        if all and not text:match('^%d', #all + 1) then
            year, day = tonumber(year), tonumber(day)
            if day < 1 or day > (is_leap(year) and 366 or 365) then
                return nil
            end
            return days_of(year, 1, day), #all
        end
    end
    return nil
end

-- Seconds and nanoseconds of a time of day, and how many bytes it has.
local function parse_time(text)
    local all, hour, min, sec = text:match('^((%d%d):(%d%d):(%d%d))')
    if not all then
        all, hour, min, sec = text:match('^((%d%d)(%d%d)(%d%d))')
    end
    if not all then
        all, hour, min = text:match('^((%d%d):?(%d%d))')
    end
    if not all then
        all, hour = text:match('^((%d%d))')
    end
    if not all then
        return nil
    end
    hour, min, sec = tonumber(hour), tonumber(min or 0), tonumber(sec or 0)
    if hour > 24 or min > 59 or sec > 60 or hour == 24 and min + sec > 0 then
        return nil
    end
    local length, nsec = #all, 0
    local digits = text:match('^[.,](%d+)', length + 1)
    if digits then
        length = length + 1 + #digits
        nsec = tonumber((digits .. '000000000'):sub(1, 9))
    end
    return hour * 3600 + min * 60 + sec, nsec, length
end

-- A zone at the beginning of a text: number, offset, how many bytes it has.
local function parse_zone(text, seconds)
    local offset, length = parse_offset(text)
    if offset then
        return 0, offset, length
    end
    local name = text:match('^[%a][%w/_+-]*')
    if name == nil then
        return nil
    end
    local number, found = zone_of(name, seconds)
    return number, found, #name
end

local function parse_full(text)
    local function refuse()
        error(("could not parse '%s'"):format(text), 4)
    end
    local days, at = parse_date(text)
    if days == nil then
        refuse()
    end
    local seconds, nsec, number, offset = days * DAY_S, 0, 0, 0
    if text:match('^[Tt ]', at + 1) then
        local second, fraction, length = parse_time(text:sub(at + 2))
        if second == nil then
            refuse()
        end
        seconds, nsec, at = seconds + second, fraction, at + 1 + length
        local gap = #text:match('^ ?', at + 1)
        local fine, zone, found, zone_length = pcall(parse_zone, text:sub(at + 1 + gap), seconds)
        if not fine then
            local reason = tostring(zone):match(' %- .*$') or ''
            error(("could not parse '%s'%s"):format(text, reason), 4)
        elseif zone then
            number, offset, at = zone, found, at + gap + zone_length
        end
    end
    return make(seconds - offset * 60, nsec, offset, number), at
end

local function parse_name(text, at, names)
    for number, name in ipairs(names) do
        for _, word in ipairs({ name, name:sub(1, 3) }) do
            if text:sub(at, at + #word - 1):lower() == word:lower() then
                return number, at + #word
            end
        end
    end
    return nil
end

-- Digits at a place, at most so many. Their number and what is behind them.
local function parse_digits(text, at, most)
    local digits = text:match('^%d+', at)
    if digits == nil then
        return nil
    end
    digits = digits:sub(1, most)
    return tonumber(digits), at + #digits, digits
end

local NUMBERS = {
    d = { 'day', 2 }, e = { 'day', 2 }, H = { 'hour', 2 }, k = { 'hour', 2 }, I = { 'hour12', 2 }, l = { 'hour12', 2 },
    j = { 'yday', 3 }, m = { 'month', 2 }, M = { 'min', 2 }, S = { 'sec', 2 }, s = { 'epoch', 15 }, y = { 'short', 2 },
    C = { 'century', 2 }, u = { 'skipped', 1 }, w = { 'skipped', 1 }, U = { 'skipped', 2 }, V = { 'skipped', 2 }, W = { 'skipped', 2 },
    G = { 'skipped', 4 }, g = { 'skipped', 2 },
}
local BOUNDS = {
    day = { 1, 31 }, hour = { 0, 23 }, hour12 = { 1, 12 }, yday = { 1, 366 }, month = { 1, 12 }, min = { 0, 59 }, sec = { 0, 60 },
}

-- Takes a text apart as a form says. What was found, and the place behind it; nil if it is not so.
local function take_apart(text, form)
    local found, at, zone_name = {}, 1, nil
    local place = 1
    while place <= #form do
        local letter = form:sub(place, place)
        if letter == '%' then
            local skipped
            skipped, letter = form:match('^(%d*)(.)', place + 1)
            if letter == nil then
                return nil
            end
            place = place + 2 + #skipped
            local number = NUMBERS[letter]
            if number then
                at = at + #text:match('^%s*', at)
                local sign = letter == 's' and text:match('^-', at) and -1 or 1
                local value, behind = parse_digits(text, sign < 0 and at + 1 or at, number[2])
                local bounds = BOUNDS[number[1]]
                if value == nil or bounds and (value < bounds[1] or value > bounds[2]) then
                    return nil
                end
                found[number[1]], at = sign * value, behind
            elseif letter == 'Y' then
                local sign = text:match('^-', at) and -1 or 1
                local value, behind = parse_digits(text, sign < 0 and at + 1 or at, sign < 0 and 7 or 4)
                if value == nil then
                    return nil
                end
                found.year, at = sign * value, behind
            elseif letter == 'f' then
                local _, behind, digits = parse_digits(text, at, 9)
                if digits == nil then
                    return nil
                end
                found.nsec, at = tonumber((digits .. '000000000'):sub(1, 9)), behind
            elseif letter == 'b' or letter == 'B' or letter == 'h' then
                found.month, at = parse_name(text, at, MONTHS)
            elseif letter == 'a' or letter == 'A' then
                found.skipped, at = parse_name(text, at, WEEKDAYS)
            elseif letter == 'p' then
                local half = text:sub(at, at + 1):upper()
                if half ~= 'AM' and half ~= 'PM' then
                    return nil
                end
                found.is_afternoon, at = half == 'PM', at + 2
            elseif letter == 'z' then
                local offset, length = parse_offset(text:sub(at))
                if offset == nil then
                    return nil
                end
                found.offset, at = offset, at + length
            elseif letter == 'Z' then
                zone_name = text:match('^%a[%w/_+-]*', at)
                if zone_name == nil then
                    return nil
                end
                at = at + #zone_name
            elseif letter == 'n' or letter == 't' then
                at = at + #text:match('^%s*', at)
            elseif letter == '%' and text:sub(at, at) == '%' then
                at = at + 1
            else
                return nil
            end
            if at == nil then
                return nil
            end
        elseif letter:match('%s') then
            at, place = at + #text:match('^%s*', at), place + 1
        elseif text:sub(at, at) == letter then
            at, place = at + 1, place + 1
        else
            return nil
        end
    end
    return found, at, zone_name
end

local function parse_form(text, form)
    local function refuse()
        error(("could not parse '%s' using '%s' format"):format(text, form), 4)
    end
    local found, at, zone_name = take_apart(text, expand(form))
    if found == nil then
        refuse()
    end
    local seconds = found.epoch
    if seconds == nil then
        local year = found.year
        if year == nil and found.short then
            year = found.century and found.century * 100 + found.short or found.short + (found.short < 69 and 2000 or 1900)
        end
        year = year or 1970
        local month, day = found.month or 1, found.day or 1
        if year < MIN_YEAR or year > MAX_YEAR or day > days_in_month(year, month) then
            refuse()
        end
        local days = found.yday and days_of(year, 1, found.yday) or days_of(year, month, day)
        local hour = found.hour or 0
        if found.hour12 then
            hour = found.hour12 % 12 + (found.is_afternoon and 12 or 0)
        end
        seconds = days * DAY_S + hour * 3600 + (found.min or 0) * 60 + (found.sec or 0)
    end
    local zone, offset = 0, found.offset or 0
    if zone_name then
        local fine, number, ahead = pcall(zone_of, zone_name, seconds)
        if not fine then
            refuse()
        end
        zone, offset = number, ahead
    end
    local utc = found.epoch and seconds or seconds - offset * 60
    local days = floor(utc / DAY_S)
    if days < MIN_DAYS or days > MAX_DAYS then
        refuse()
    end
    return make(utc, found.nsec or 0, offset, zone), at - 1
end

local function parse(text, options)
    check_text(text, 'datetime.parse()')
    if options ~= nil then
        check_table(options, 'datetime.parse()')
    end
    options = options or {}
    local form = options.format
    if form ~= nil then
        check_text(form, 'datetime.parse()')
    end
    local offset = offset_of(options.tzoffset)
    if options.tz ~= nil then
        check_text(options.tz, 'datetime.parse()')
        if offset ~= nil then
            error('ambiguous timezone: both tzoffset and tz are specified', 2)
        end
    end
    local result, length
    if form == nil or form == '' or form == 'iso8601' or form == 'rfc3339' then
        result, length = parse_full(text)
    else
        result, length = parse_form(text, form)
    end
    -- For a text that does not say.
    if result.tzindex == 0 and result.tzoffset == 0 and (offset ~= nil or options.tz ~= nil) then
        set(result, { tzoffset = offset, tz = options.tz })
    end
    return result, length
end

-- The types ---------------------------------------------------------------------------------------------------------------------------
local fields = {
    timestamp = function(self) return self.epoch + self.nsec / 1e9 end,
    year = function(self) return parts_of(self).year end,
    yday = function(self) return year_day_of(parts_of(self)) end,
    month = function(self) return parts_of(self).month end,
    day = function(self) return parts_of(self).day end,
    wday = function(self) return weekday_of(parts_of(self).days) + 1 end,
    hour = function(self) return parts_of(self).hour end,
    min = function(self) return parts_of(self).min end,
    sec = function(self) return self.epoch % 60 end,
    usec = function(self) return self.nsec / 1e3 end,
    msec = function(self) return self.nsec / 1e6 end,
    isdst = function(self)
        local _, is_summer = internal.datetime_offset(self.tzindex, self.epoch, false)
        return is_summer or false
    end,
    tz = zone_text,
}

local function check_shift(value, what)
    if not is_interval(value) and type(value) ~= 'table' then
        error(('%s: expected interval or table, but received %s'):format(what, type(value)), 3)
    end
    return interval_of(value)
end

local methods = {
    format = format, totable = totable, set = set,
    add = function(self, given) return shift(self, check_shift(given, 'datetime.add'), 1) end,
    sub = function(self, given) return shift(self, check_shift(given, 'datetime.sub'), -1) end,
}

ffi.metatype(datetime_type, {
    __tostring = internal.datetime_text,
    __eq = function(a, b) return compare(a, b, false) == 0 end,
    __lt = function(a, b) return compare(a, b, true) < 0 end,
    __le = function(a, b) return compare(a, b, true) <= 0 end,
    __add = add, __sub = subtract,
    __index = function(self, name)
        local get = fields[name]
        if get then
            return get(self)
        end
        return methods[name]
    end,
})

local interval_methods = {
    totable = function(self)
        local result = { adjust = ADJUST_NAMES[tonumber(self.adjust)] }
        for _, name in ipairs(FIELDS) do
            result[name] = self[name]
        end
        return result
    end,
    __serialize = function(self) return internal.interval_text(self) end,
}

ffi.metatype(interval_type, {
    __tostring = internal.interval_text,
    __eq = function(a, b) return compare_intervals(a, b, false) == 0 end,
    __lt = function(a, b) return compare_intervals(a, b, true) < 0 end,
    __le = function(a, b) return compare_intervals(a, b, true) <= 0 end,
    __add = add, __sub = subtract,
    __index = function(self, name)
        if name == 'usec' then
            return floor(self.nsec / 1e3)
        elseif name == 'msec' then
            return floor(self.nsec / 1e6)
        end
        return interval_methods[name]
    end,
})

package.loaded.datetime = {
    new = new, now = now, parse = parse, is_datetime = is_datetime,
    parse_date = function(text)
        check_text(text, 'datetime.parse_date()')
        local days, length = parse_date(text)
        if days == nil then
            error(('invalid date format %s'):format(text), 2)
        end
        return make(days * DAY_S, 0), length
    end,
    interval = { new = new_interval, is_interval = is_interval },
    TZ = internal.datetime_zones(),
}
