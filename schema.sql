-- The tables of an undertext store, version 1.
--
-- Part 1 holds facts: they belong to an operation, and triggers refuse every update, delete and replacement.
-- Part 2 holds bytes: addressed by content; they may be packed differently, but never become others.
-- Part 3 holds derived rows: they can be made anew from parts 1 and 2.
--
-- Hashes are stored whole and indexed by their first 6 bytes; what an index finds is compared in full.
--
-- A refused insert needs a trigger of its own: INSERT OR REPLACE fires no delete trigger.

---------------------------------------------------------------------------------------------------- Part 1: facts

-- A session: one conversation of one agent, named for ever by the agent's format and the agent's id.
CREATE TABLE session (
  key    INTEGER PRIMARY KEY,                        -- the store's own number
  format TEXT NOT NULL,
  id     TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX session_name ON session (format, id);
CREATE TRIGGER session_is_not_replaced BEFORE INSERT ON session WHEN EXISTS (SELECT 1 FROM session WHERE key = NEW.key)
  OR EXISTS (SELECT 1 FROM session WHERE format = NEW.format AND id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'append-only: this session exists'); END;
CREATE TRIGGER session_is_not_updated BEFORE UPDATE ON session BEGIN SELECT RAISE(ABORT, 'append-only: session'); END;
CREATE TRIGGER session_is_not_deleted BEFORE DELETE ON session BEGIN SELECT RAISE(ABORT, 'append-only: session'); END;

-- One command that changed a session. Its hash covers its facts and the operation before it.
CREATE TABLE operation (
  session INTEGER NOT NULL,
  n       INTEGER NOT NULL CHECK (n > 0),            -- 1, 2, 3 ... in the session
  at      INTEGER NOT NULL,                          -- milliseconds since 1970, UTC
  command TEXT NOT NULL,
  detail  TEXT NOT NULL,                             -- a JSON object
  undoes  INTEGER CHECK (undoes < n),                -- the operation that it undoes
  first   INTEGER NOT NULL,                          -- the first entry it added
  count   INTEGER NOT NULL,                          -- how many it added
  hash    BLOB NOT NULL CHECK (length(hash) = 32),
  PRIMARY KEY (session, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX operation_undoes ON operation (session, n, undoes) WHERE undoes IS NOT NULL;
CREATE TRIGGER operation_is_not_replaced BEFORE INSERT ON operation WHEN EXISTS (SELECT 1 FROM operation WHERE session = NEW.session AND n = NEW.n)
BEGIN SELECT RAISE(ABORT, 'append-only: this operation exists'); END;
CREATE TRIGGER operation_is_not_updated BEFORE UPDATE ON operation BEGIN SELECT RAISE(ABORT, 'append-only: operation'); END;
CREATE TRIGGER operation_is_not_deleted BEFORE DELETE ON operation BEGIN SELECT RAISE(ABORT, 'append-only: operation'); END;

-- A line in a session. The id covers the line and the link.
CREATE TABLE entry (
  session INTEGER NOT NULL,
  n       INTEGER NOT NULL CHECK (n > 0),
  id      BLOB NOT NULL CHECK (length(id) = 32),
  link    INTEGER CHECK (link < n),                  -- the entry that the id is linked to, if the line has no name
  line    INTEGER NOT NULL,                          -- line.key
  PRIMARY KEY (session, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX entry_id ON entry (session, substr(id, 1, 6));
CREATE TRIGGER entry_is_not_replaced BEFORE INSERT ON entry WHEN EXISTS (SELECT 1 FROM entry WHERE session = NEW.session AND n = NEW.n)
  OR EXISTS (SELECT 1 FROM entry WHERE session = NEW.session AND id = NEW.id
    -- A range, because the planner takes an equality here for a reason to walk the session.
    AND substr(id, 1, 6) BETWEEN substr(NEW.id, 1, 6) AND substr(NEW.id, 1, 6))
BEGIN SELECT RAISE(ABORT, 'append-only: this entry exists'); END;
CREATE TRIGGER entry_is_not_updated BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'append-only: entry'); END;
CREATE TRIGGER entry_is_not_deleted BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'append-only: entry'); END;

-- A file that holds, or held, generations of a session.
CREATE TABLE file (
  session   INTEGER NOT NULL,
  n         INTEGER NOT NULL CHECK (n > 0),
  operation INTEGER NOT NULL,
  path      BLOB NOT NULL,                           -- relative: below the store's folder
  PRIMARY KEY (session, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX file_path ON file (path);
CREATE TRIGGER file_is_not_replaced BEFORE INSERT ON file WHEN EXISTS (SELECT 1 FROM file WHERE session = NEW.session AND n = NEW.n)
BEGIN SELECT RAISE(ABORT, 'append-only: this file exists'); END;
CREATE TRIGGER file_is_not_updated BEFORE UPDATE ON file BEGIN SELECT RAISE(ABORT, 'append-only: file'); END;
CREATE TRIGGER file_is_not_deleted BEFORE DELETE ON file BEGIN SELECT RAISE(ABORT, 'append-only: file'); END;

-- One state of one file, as an ordered list of entries.
CREATE TABLE generation (
  session   INTEGER NOT NULL,
  n         INTEGER NOT NULL CHECK (n > 0),
  operation INTEGER NOT NULL,
  file      INTEGER,
  PRIMARY KEY (session, n)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER generation_is_not_replaced BEFORE INSERT ON generation WHEN EXISTS (SELECT 1 FROM generation WHERE session = NEW.session AND n = NEW.n)
BEGIN SELECT RAISE(ABORT, 'append-only: this generation exists'); END;
CREATE TRIGGER generation_is_not_updated BEFORE UPDATE ON generation BEGIN SELECT RAISE(ABORT, 'append-only: generation'); END;
CREATE TRIGGER generation_is_not_deleted BEFORE DELETE ON generation BEGIN SELECT RAISE(ABORT, 'append-only: generation'); END;

-- A stretch by which a generation grew: entries first .. first + count at the positions start .. start + count.
CREATE TABLE run (
  session    INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  start      INTEGER NOT NULL,
  operation  INTEGER NOT NULL,
  first      INTEGER NOT NULL,
  count      INTEGER NOT NULL,
  gaps       BLOB NOT NULL,                          -- separators, where they are not the usual ones
  bytes      INTEGER NOT NULL,                       -- the file's length up to the end of the run
  running    BLOB NOT NULL CHECK (length(running) = 32),
  tail       BLOB NOT NULL,                          -- what follows the last entry of a growth
  PRIMARY KEY (session, generation, start, operation)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER run_is_not_replaced BEFORE INSERT ON run WHEN EXISTS (SELECT 1 FROM run WHERE session = NEW.session AND generation = NEW.generation AND start = NEW.start AND operation = NEW.operation)
BEGIN SELECT RAISE(ABORT, 'append-only: this run exists'); END;
CREATE TRIGGER run_is_not_updated BEFORE UPDATE ON run BEGIN SELECT RAISE(ABORT, 'append-only: run'); END;
CREATE TRIGGER run_is_not_deleted BEFORE DELETE ON run BEGIN SELECT RAISE(ABORT, 'append-only: run'); END;

-- A branch that was made, moved or hidden. A position is a generation, a head in it and a horizon.
CREATE TABLE move (
  session         INTEGER NOT NULL,
  branch          TEXT NOT NULL,
  operation       INTEGER NOT NULL,
  from_generation INTEGER,
  from_head       INTEGER,
  from_horizon    INTEGER,
  to_generation   INTEGER,
  to_head         INTEGER,
  to_horizon      INTEGER,
  PRIMARY KEY (session, branch, operation)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER move_is_not_replaced BEFORE INSERT ON move WHEN EXISTS (SELECT 1 FROM move WHERE session = NEW.session AND branch = NEW.branch AND operation = NEW.operation)
BEGIN SELECT RAISE(ABORT, 'append-only: this move exists'); END;
CREATE TRIGGER move_is_not_updated BEFORE UPDATE ON move BEGIN SELECT RAISE(ABORT, 'append-only: move'); END;
CREATE TRIGGER move_is_not_deleted BEFORE DELETE ON move BEGIN SELECT RAISE(ABORT, 'append-only: move'); END;

-- A named value of the session that was set: the current branch, the live file, hidden.
CREATE TABLE mark (
  session    INTEGER NOT NULL,
  name       TEXT NOT NULL,
  operation  INTEGER NOT NULL,
  from_value TEXT,
  to_value   TEXT,
  PRIMARY KEY (session, name, operation)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER mark_is_not_replaced BEFORE INSERT ON mark WHEN EXISTS (SELECT 1 FROM mark WHERE session = NEW.session AND name = NEW.name AND operation = NEW.operation)
BEGIN SELECT RAISE(ABORT, 'append-only: this mark exists'); END;
CREATE TRIGGER mark_is_not_updated BEFORE UPDATE ON mark BEGIN SELECT RAISE(ABORT, 'append-only: mark'); END;
CREATE TRIGGER mark_is_not_deleted BEFORE DELETE ON mark BEGIN SELECT RAISE(ABORT, 'append-only: mark'); END;

-- A numbered place to go back to.
CREATE TABLE checkpoint (
  session    INTEGER NOT NULL,
  n          INTEGER NOT NULL CHECK (n >= 0),
  operation  INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  head       INTEGER,                                -- none: before the first entry
  horizon    INTEGER NOT NULL,
  before     INTEGER,                                -- the turn, or the agent's own record, that it stands before
  own        TEXT,                                   -- the format's own number
  note       TEXT,
  PRIMARY KEY (session, n)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER checkpoint_is_not_replaced BEFORE INSERT ON checkpoint WHEN EXISTS (SELECT 1 FROM checkpoint WHERE session = NEW.session AND n = NEW.n)
BEGIN SELECT RAISE(ABORT, 'append-only: this checkpoint exists'); END;
CREATE TRIGGER checkpoint_is_not_updated BEFORE UPDATE ON checkpoint BEGIN SELECT RAISE(ABORT, 'append-only: checkpoint'); END;
CREATE TRIGGER checkpoint_is_not_deleted BEFORE DELETE ON checkpoint BEGIN SELECT RAISE(ABORT, 'append-only: checkpoint'); END;

-- An entry that stands in the place of another.
CREATE TABLE origin (
  session   INTEGER NOT NULL,
  entry     INTEGER NOT NULL,
  operation INTEGER NOT NULL,
  origin    INTEGER NOT NULL,
  PRIMARY KEY (session, entry)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER origin_is_not_replaced BEFORE INSERT ON origin WHEN EXISTS (SELECT 1 FROM origin WHERE session = NEW.session AND entry = NEW.entry)
BEGIN SELECT RAISE(ABORT, 'append-only: this origin exists'); END;
CREATE TRIGGER origin_is_not_updated BEFORE UPDATE ON origin BEGIN SELECT RAISE(ABORT, 'append-only: origin'); END;
CREATE TRIGGER origin_is_not_deleted BEFORE DELETE ON origin BEGIN SELECT RAISE(ABORT, 'append-only: origin'); END;

-- The intent to put a new file in the place of a live one. Whether it is done, the folder itself says.
CREATE TABLE rotation (
  session   INTEGER NOT NULL,
  operation INTEGER NOT NULL,
  file      INTEGER NOT NULL,
  aside     BLOB NOT NULL,                           -- the name that the old file gets
  old       INTEGER NOT NULL,                        -- the generation in the old file
  new       INTEGER NOT NULL,                        -- the generation in the new file
  inode     INTEGER NOT NULL,                        -- of the old file
  length    INTEGER NOT NULL,                        -- of the old file
  PRIMARY KEY (session, operation, file)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER rotation_is_not_replaced BEFORE INSERT ON rotation WHEN EXISTS (SELECT 1 FROM rotation WHERE session = NEW.session AND operation = NEW.operation AND file = NEW.file)
BEGIN SELECT RAISE(ABORT, 'append-only: this rotation exists'); END;
CREATE TRIGGER rotation_is_not_updated BEFORE UPDATE ON rotation BEGIN SELECT RAISE(ABORT, 'append-only: rotation'); END;
CREATE TRIGGER rotation_is_not_deleted BEFORE DELETE ON rotation BEGIN SELECT RAISE(ABORT, 'append-only: rotation'); END;

---------------------------------------------------------------------------------------------------- Part 2: bytes

-- A line, by its hash.
CREATE TABLE line (
  key  INTEGER PRIMARY KEY,                          -- without gaps, from 1
  hash BLOB NOT NULL CHECK (length(hash) = 32),
  size INTEGER NOT NULL                              -- as it arrived
) STRICT;
CREATE INDEX line_hash ON line (substr(hash, 1, 6));
CREATE TRIGGER line_is_not_replaced BEFORE INSERT ON line WHEN EXISTS (SELECT 1 FROM line WHERE key = NEW.key)
  OR EXISTS (SELECT 1 FROM line WHERE substr(hash, 1, 6) = substr(NEW.hash, 1, 6) AND hash = NEW.hash)
BEGIN SELECT RAISE(ABORT, 'append-only: this line exists'); END;
CREATE TRIGGER line_is_not_updated BEFORE UPDATE ON line BEGIN SELECT RAISE(ABORT, 'append-only: line'); END;
CREATE TRIGGER line_is_not_deleted BEFORE DELETE ON line BEGIN SELECT RAISE(ABORT, 'append-only: line'); END;

-- The body of a line that lies in no segment yet: the number of references; for each the length of the literal bytes
-- before it, then the line, the offset in that line's literal bytes and the length that it stands for; then the literal
-- bytes. Numbers are varints.
CREATE TABLE fresh (
  key  INTEGER PRIMARY KEY,                          -- line.key
  body BLOB NOT NULL
) STRICT;

-- Bodies of consecutive lines, packed together: zstd over each body's length, then the bodies.
CREATE TABLE segment (
  key   INTEGER PRIMARY KEY,                         -- the first line's key
  count INTEGER NOT NULL,                            -- how many lines
  size  INTEGER NOT NULL,                            -- before compression
  body  BLOB NOT NULL
) STRICT;

-- Where a string of 256 bytes or more was met first: in the literal bytes of a line's body.
CREATE TABLE text (
  tag  BLOB NOT NULL CHECK (length(tag) = 6),        -- of the BLAKE3 of the bytes between its quotes
  line INTEGER NOT NULL,
  at   INTEGER NOT NULL,
  size INTEGER NOT NULL,
  PRIMARY KEY (tag, line, at)
) STRICT, WITHOUT ROWID;

---------------------------------------------------------------------------------------------------- Part 3: derived

-- What a format makes of an entry.
CREATE TABLE record (
  session INTEGER NOT NULL,
  n       INTEGER NOT NULL,
  kind    INTEGER NOT NULL,
  name    INTEGER,                                   -- the tag of the record's own name
  parent  INTEGER,                                   -- none: a root; 0: missing
  time    INTEGER,
  hint    BLOB,                                      -- what else the format's path rule must know
  PRIMARY KEY (session, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX record_name ON record (session, name) WHERE name IS NOT NULL;
CREATE INDEX record_boundary ON record (session, n) WHERE kind = 6;

-- A name that more than one entry has, or that was referred to before it came.
CREATE TABLE twin (
  session INTEGER NOT NULL,
  name    INTEGER NOT NULL,
  PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;

-- What lists show of a session.
CREATE TABLE card (
  session INTEGER PRIMARY KEY,
  format  TEXT NOT NULL,                             -- again, so that a list needs no other table
  id      TEXT NOT NULL,
  title   TEXT,
  folder  TEXT,
  started INTEGER NOT NULL,
  active  INTEGER NOT NULL,
  turns   INTEGER NOT NULL,
  hidden  INTEGER NOT NULL
) STRICT;
CREATE INDEX card_active ON card (active);

-- What a state of a file shows of other sessions. All states of all sessions that begin alike have one beginning.
CREATE TABLE tie (
  session    INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  kind       INTEGER NOT NULL,
  other      TEXT NOT NULL,                          -- the agent's id of the other session, or the beginning
  PRIMARY KEY (session, generation, kind, other)
) STRICT, WITHOUT ROWID;
CREATE INDEX tie_other ON tie (other, kind);

-- A cache: a file as it was when all of it was in the store, so that an unchanged one is not read again.
CREATE TABLE sighting (
  path     BLOB PRIMARY KEY,
  inode    INTEGER NOT NULL,
  length   INTEGER NOT NULL,
  modified INTEGER NOT NULL,                         -- nanoseconds since 1970
  changed  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A cache: how many tokens the messages of a line take, each a varint, under a rule of counting.
CREATE TABLE count (
  line   INTEGER NOT NULL,                           -- line.key
  rule   INTEGER NOT NULL,
  tokens BLOB NOT NULL,
  PRIMARY KEY (line, rule)
) STRICT, WITHOUT ROWID;

-- Under which rules the derived rows were made.
CREATE TABLE rules (
  version INTEGER NOT NULL
) STRICT;
