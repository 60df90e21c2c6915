#!/usr/bin/env python3
"""Checks that every relative link of every page of the repository leads to a file or folder, and every anchor to a heading.

Prints file:line for each that does not; the exit status is 1 if there is one. Links to other sites are not followed.
"""

import pathlib
import re
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
SKIPPED = {"target", "data", "node_modules", ".git", ".venv"}
# [text](target), and ![image](target); [label]: target.
INLINE = re.compile(r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(\s*<?([^()\s<>]*(?:\([^()\s]*\)[^()\s<>]*)*)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^\s{0,3}\[[^\]]+\]:\s*<?(\S+?)>?(?:\s+\"[^\"]*\")?\s*$")
HEADING = re.compile(r"^\s{0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
CODE = re.compile(r"(`+)(.+?)\1")


def pages():
    for path in sorted(ROOT.rglob("*.md")):
        parts = path.relative_to(ROOT).parts
        if not SKIPPED.intersection(parts):
            yield path


def lines_of(path):
    """Numbered lines outside of fenced code."""
    fence = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        mark = re.match(r"^\s{0,3}(`{3,}|~{3,})", line)
        if mark:
            kind = mark.group(1)
            if fence is None:
                fence = kind
            elif kind[0] == fence[0] and len(kind) >= len(fence):
                fence = None
            continue
        if fence is None:
            yield number, line


def slug(heading):
    """The anchor that a heading gets: as the usual viewers make it."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = re.sub(r"[`*]", "", text).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors_of(path, cache={}):
    if path not in cache:
        found, seen = set(), {}
        for _, line in lines_of(path):
            heading = HEADING.match(line)
            if heading:
                name = slug(heading.group(2))
                count = seen.get(name, 0)
                seen[name] = count + 1
                found.add(f"{name}-{count}" if count else name)
            found.update(re.findall(r"<a\s+(?:name|id)=\"([^\"]+)\"", line))
        cache[path] = found
    return cache[path]


def trouble_with(page, target):
    """What is wrong with a link, or None."""
    if re.match(r"^[a-zA-Z][a-zA-Z0-9+.-]*:", target) or target.startswith("//"):
        return None
    name, _, anchor = target.partition("#")
    name = urllib.parse.unquote(name)
    if name.startswith("/"):
        return "begins at the root of a machine"
    found = (page.parent / name).resolve() if name else page
    if not found.exists():
        return "no such file"
    if ROOT not in found.parents and found != ROOT:
        return "leads out of the repository"
    if anchor and found.suffix == ".md" and anchor.lower() not in anchors_of(found):
        return f"no heading #{anchor}"
    return None


def main():
    count = bad = 0
    for page in pages():
        for number, line in lines_of(page):
            text = CODE.sub(lambda code: " " * len(code.group(0)), line)
            # Code in the text of a link is blanked too, which leaves the link.
            targets = INLINE.findall(text)
            reference = REFERENCE.match(text)
            if reference:
                targets.append(reference.group(1))
            for target in targets:
                count += 1
                trouble = trouble_with(page, target)
                if trouble:
                    bad += 1
                    print(f"{page.relative_to(ROOT)}:{number}: {target}: {trouble}")
    print(f"{count} links, {bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
