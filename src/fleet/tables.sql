-- One row: what was merged.
CREATE TABLE fleet (schema TEXT, time TEXT, tool_version TEXT, reports INTEGER, screens INTEGER, nodes INTEGER);
-- A device of a machine, with the class of its last report and the verdict of its last screen (NULL without one).
CREATE TABLE device (node TEXT, selector TEXT, backend TEXT, fingerprint TEXT, driver TEXT, class TEXT, verdict TEXT,
    PRIMARY KEY (node, selector));
-- Devices of one kind that answered alike; is_usual is 1 for the largest class of a kind.
CREATE TABLE class (backend TEXT, fingerprint TEXT, class TEXT, devices INTEGER, is_usual INTEGER,
    PRIMARY KEY (backend, fingerprint, class));
-- An answer of a class that is not the one of the usual class; NULL if the question was not asked.
CREATE TABLE difference (backend TEXT, fingerprint TEXT, class TEXT, operation TEXT, probe TEXT, usual TEXT, here TEXT);
-- Why the last screen of a device is `wrong` or `unknown`, a row for each operation.
CREATE TABLE unhealthy (node TEXT, selector TEXT, verdict TEXT, start TEXT, what TEXT);
-- With --since: a device whose kind, behaviour, driver or verdict (`what`) changed.
CREATE TABLE change (node TEXT, selector TEXT, what TEXT, before TEXT, now TEXT);
-- A file that is neither a report nor a screen.
CREATE TABLE skipped (path TEXT, reason TEXT);
