-- Gives two spaces of keys each other's names, at once. Arguments: the names.
local a, b = ...
box.begin()
local first, second = box.space[a], box.space[b]
first:rename(a .. '_swapped')
second:rename(a)
first:rename(b)
box.commit()
