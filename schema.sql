-- The tables of an undertext store, version 8.
--
-- Part 1 holds facts: they belong to an operation, and triggers refuse every update, delete and replacement.
-- Part 2 holds bytes: lines, which may be packed differently, but never become others.
-- Part 3 holds derived rows: they can be rebuilt from parts 1 and 2.
--
-- An operation lies in the journal or in the other tables, never in both. Small facts (files, generations, moves, marks,
-- rotations) stand in its record only. Facts that come in bulk have rows; the record names them by count and digest.
--
-- Ids are stored whole and indexed by their first 6 bytes; what an index finds is compared in full.
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

-- A store whose operations are here: this one, and those whose operations it was given.
CREATE TABLE store (
  key INTEGER PRIMARY KEY,                           -- 1: this store
  id  BLOB NOT NULL CHECK (length(id) = 16)          -- drawn when the store was made
) STRICT;
CREATE UNIQUE INDEX store_id ON store (id);
CREATE TRIGGER store_is_not_replaced BEFORE INSERT ON store WHEN EXISTS (SELECT 1 FROM store WHERE key = NEW.key)
  OR EXISTS (SELECT 1 FROM store WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'append-only: this store exists'); END;
CREATE TRIGGER store_is_not_updated BEFORE UPDATE ON store BEGIN SELECT RAISE(ABORT, 'append-only: store'); END;
CREATE TRIGGER store_is_not_deleted BEFORE DELETE ON store BEGIN SELECT RAISE(ABORT, 'append-only: store'); END;

-- One command that changed a session. Its hash covers its record and the operation before it.
CREATE TABLE operation (
  seq     INTEGER PRIMARY KEY,                       -- 1, 2, 3 ... in this store; in no hash
  session INTEGER NOT NULL,                          -- session.key
  store   INTEGER NOT NULL,                          -- store.key: whose chain it belongs to
  n       INTEGER NOT NULL CHECK (n > 0),            -- 1, 2, 3 ... in the chain
  hash    BLOB NOT NULL CHECK (length(hash) = 32),
  record  BLOB NOT NULL                              -- what it did, in its canonical form
) STRICT;
CREATE UNIQUE INDEX operation_chain ON operation (session, store, n);
CREATE TRIGGER operation_is_not_replaced BEFORE INSERT ON operation
  WHEN NEW.seq <> 1 + (SELECT ifnull(max(seq), 0) FROM operation)
  OR EXISTS (SELECT 1 FROM operation WHERE session = NEW.session AND store = NEW.store AND n = NEW.n)
BEGIN SELECT RAISE(ABORT, 'append-only: this operation exists, or does not follow'); END;
CREATE TRIGGER operation_is_not_updated BEFORE UPDATE ON operation BEGIN SELECT RAISE(ABORT, 'append-only: operation'); END;
CREATE TRIGGER operation_is_not_deleted BEFORE DELETE ON operation BEGIN SELECT RAISE(ABORT, 'append-only: operation'); END;

-- A small operation as it was committed, with all that it brings; it waits to be settled in the other tables.
CREATE TABLE journal (
  seq  INTEGER PRIMARY KEY,                          -- operation.seq
  body BLOB NOT NULL
) STRICT;
CREATE TRIGGER journal_is_not_replaced BEFORE INSERT ON journal
  WHEN NEW.seq <> 1 + max((SELECT ifnull(max(seq), 0) FROM journal), (SELECT ifnull(max(seq), 0) FROM operation))
BEGIN SELECT RAISE(ABORT, 'append-only: this operation exists, or does not follow'); END;
CREATE TRIGGER journal_is_not_updated BEFORE UPDATE ON journal BEGIN SELECT RAISE(ABORT, 'append-only: journal'); END;
CREATE TRIGGER journal_is_not_lost BEFORE DELETE ON journal WHEN NOT EXISTS (SELECT 1 FROM operation WHERE seq = OLD.seq)
BEGIN SELECT RAISE(ABORT, 'append-only: this operation is nowhere else'); END;

-- A line in a session. The id covers the line and the link.
CREATE TABLE entry (
  session INTEGER NOT NULL,
  n       INTEGER NOT NULL CHECK (n > 0),
  id      BLOB NOT NULL CHECK (length(id) = 32),
  link    INTEGER CHECK (link > 0 AND link < n),     -- n minus the entry that the id is linked to; none: it covers the line alone
  line    INTEGER NOT NULL,                          -- the line's number in this store
  PRIMARY KEY (session, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX entry_id ON entry (substr(id, 1, 6));
CREATE TRIGGER entry_is_not_replaced BEFORE INSERT ON entry WHEN EXISTS (SELECT 1 FROM entry WHERE session = NEW.session AND n = NEW.n)
  OR EXISTS (SELECT 1 FROM entry WHERE substr(id, 1, 6) = substr(NEW.id, 1, 6) AND session = NEW.session AND id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'append-only: this entry exists'); END;
CREATE TRIGGER entry_is_not_updated BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'append-only: entry'); END;
CREATE TRIGGER entry_is_not_deleted BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'append-only: entry'); END;

-- A stretch by which a generation grew: entries first .. first + count at the positions start .. start + count.
-- A tail that is taken out goes as a whole; a later record then has the digest of what is left.
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
  tail       BLOB NOT NULL,                          -- what follows the last entry of a growth; packed if it is long
  PRIMARY KEY (session, generation, start, operation)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_operation ON run (session, operation);
CREATE TRIGGER run_is_not_replaced BEFORE INSERT ON run WHEN EXISTS (SELECT 1 FROM run WHERE session = NEW.session AND generation = NEW.generation AND start = NEW.start AND operation = NEW.operation)
BEGIN SELECT RAISE(ABORT, 'append-only: this run exists'); END;
CREATE TRIGGER run_is_not_updated BEFORE UPDATE ON run BEGIN SELECT RAISE(ABORT, 'append-only: run'); END;
CREATE TRIGGER run_is_not_deleted BEFORE DELETE ON run BEGIN SELECT RAISE(ABORT, 'append-only: run'); END;

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
  note       BLOB,                                   -- words, as they stand in a record
  PRIMARY KEY (session, n)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER checkpoint_is_not_replaced BEFORE INSERT ON checkpoint WHEN EXISTS (SELECT 1 FROM checkpoint WHERE session = NEW.session AND n = NEW.n)
BEGIN SELECT RAISE(ABORT, 'append-only: this checkpoint exists'); END;
CREATE TRIGGER checkpoint_is_not_updated BEFORE UPDATE ON checkpoint BEGIN SELECT RAISE(ABORT, 'append-only: checkpoint'); END;
CREATE TRIGGER checkpoint_is_not_deleted BEFORE DELETE ON checkpoint BEGIN SELECT RAISE(ABORT, 'append-only: checkpoint'); END;

-- An entry that stands in the place of another; one that was taken back and done again has another row.
CREATE TABLE origin (
  session   INTEGER NOT NULL,
  entry     INTEGER NOT NULL,
  operation INTEGER NOT NULL,
  origin    INTEGER NOT NULL,
  cut       BLOB,                                    -- what was cut of it, if it was replaced for that
  PRIMARY KEY (session, entry, operation)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER origin_is_not_replaced BEFORE INSERT ON origin WHEN EXISTS (SELECT 1 FROM origin WHERE session = NEW.session AND entry = NEW.entry AND operation = NEW.operation)
BEGIN SELECT RAISE(ABORT, 'append-only: this origin exists'); END;
CREATE TRIGGER origin_is_not_updated BEFORE UPDATE ON origin BEGIN SELECT RAISE(ABORT, 'append-only: origin'); END;
CREATE TRIGGER origin_is_not_deleted BEFORE DELETE ON origin BEGIN SELECT RAISE(ABORT, 'append-only: origin'); END;

-- Words of a person: the record holds their salted digest, so that the chain still verifies without them.
CREATE TABLE words (
  session   INTEGER NOT NULL,
  operation INTEGER NOT NULL,
  digest    BLOB NOT NULL CHECK (length(digest) = 32),
  salt      BLOB NOT NULL CHECK (length(salt) = 16),
  text      TEXT NOT NULL,
  PRIMARY KEY (session, operation, digest)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER words_are_not_replaced BEFORE INSERT ON words WHEN EXISTS (SELECT 1 FROM words WHERE session = NEW.session AND operation = NEW.operation AND digest = NEW.digest)
BEGIN SELECT RAISE(ABORT, 'append-only: these words exist'); END;
CREATE TRIGGER words_are_not_updated BEFORE UPDATE ON words BEGIN SELECT RAISE(ABORT, 'append-only: words'); END;
CREATE TRIGGER words_are_not_deleted BEFORE DELETE ON words BEGIN SELECT RAISE(ABORT, 'append-only: words'); END;

-- A file that is kept whole, such as a compressed one, or one next to a session's own. Its bytes are kept as a line's.
CREATE TABLE kept (
  session   INTEGER NOT NULL,
  operation INTEGER NOT NULL,
  n         INTEGER NOT NULL,                        -- its containers, then its sidecars, from 0
  line      INTEGER NOT NULL,                        -- the line's number in this store
  PRIMARY KEY (session, operation, n)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER kept_is_not_replaced BEFORE INSERT ON kept WHEN EXISTS (SELECT 1 FROM kept WHERE session = NEW.session AND operation = NEW.operation AND n = NEW.n)
BEGIN SELECT RAISE(ABORT, 'append-only: this file is kept'); END;
CREATE TRIGGER kept_is_not_updated BEFORE UPDATE ON kept BEGIN SELECT RAISE(ABORT, 'append-only: kept'); END;
CREATE TRIGGER kept_is_not_deleted BEFORE DELETE ON kept BEGIN SELECT RAISE(ABORT, 'append-only: kept'); END;

---------------------------------------------------------------------------------------------------- Part 2: bytes

-- Lines have numbers without gaps, from 1. The first ones lie in segments, the others in rows of their own.

-- Bodies of consecutive lines, packed together: each body's length, a varint, then the bodies.
CREATE TABLE segment (
  key   INTEGER PRIMARY KEY,                         -- the first line's number
  count INTEGER NOT NULL,                            -- how many lines
  size  INTEGER NOT NULL,                            -- before compression
  codec INTEGER NOT NULL,                            -- how it is packed; 1: zstd
  sum   BLOB NOT NULL CHECK (length(sum) = 8),       -- of the BLAKE3 of the rest of the row
  sizes BLOB NOT NULL,                               -- each line's length as it arrived, a varint
  body  BLOB NOT NULL
) STRICT;
-- Those with a long line, which only one thread reads at a time.
CREATE INDEX segment_long ON segment (key) WHERE size >= 4194304;

-- The body of a line that lies in no segment yet: the number of references; for each the length of the literal bytes
-- before it, then the line, the offset in that line's literal bytes and the length that it stands for; then the literal
-- bytes. Numbers are varints.
CREATE TABLE fresh (
  key  INTEGER PRIMARY KEY,                          -- the line's number
  size INTEGER NOT NULL,                             -- as it arrived
  body BLOB NOT NULL
) STRICT;

-- Where a string of 256 bytes or more was met first: in the literal bytes of a line's body.
CREATE TABLE text (
  tag  BLOB NOT NULL CHECK (length(tag) = 6),        -- of the BLAKE3 of the bytes between its quotes
  line INTEGER NOT NULL,
  at   INTEGER NOT NULL,
  size INTEGER NOT NULL,
  PRIMARY KEY (tag, line, at)
) STRICT, WITHOUT ROWID;

-- Where an equal line is found that has no name. One that has is found by its entry's id.
CREATE TABLE tag (
  tag  BLOB NOT NULL CHECK (length(tag) = 6),        -- of the BLAKE3 of the line
  line INTEGER NOT NULL,
  PRIMARY KEY (tag, line)
) STRICT, WITHOUT ROWID;

---------------------------------------------------------------------------------------------------- Part 3: derived

-- The record that a format makes of an entry.
CREATE TABLE record (
  session INTEGER NOT NULL,
  n       INTEGER NOT NULL,
  kind    INTEGER NOT NULL,
  name    INTEGER,                                   -- the tag of the record's own name
  parent  INTEGER,                                   -- n minus the entry that it follows; none: a root; 0: missing
  time    INTEGER,
  hint    BLOB,                                      -- what else the format's path rule must know
  PRIMARY KEY (session, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX record_name ON record (session, name) WHERE name IS NOT NULL;
CREATE INDEX record_boundary ON record (session, n) WHERE kind = 6;
-- Signposts: no part of the conversation, but they may say where a path goes. With the hint SQLite prefers it.
CREATE INDEX record_signpost ON record (session, n, hint) WHERE kind = 8 AND length(hint) > 1;

-- A name that more than one entry has, or that was referred to before it came.
CREATE TABLE twin (
  session INTEGER NOT NULL,
  name    INTEGER NOT NULL,
  PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;

-- A tie that a state of a file has to another session. All states of all sessions that begin alike have one beginning.
CREATE TABLE tie (
  session    INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  kind       INTEGER NOT NULL,
  other      TEXT NOT NULL,                          -- the agent's id of the other session, or the beginning
  PRIMARY KEY (session, generation, kind, other)
) STRICT, WITHOUT ROWID;
CREATE INDEX tie_other ON tie (other, kind);

-- Where a file of a session lies.
CREATE TABLE place (
  place   BLOB NOT NULL,
  session INTEGER NOT NULL,
  file    INTEGER NOT NULL,
  PRIMARY KEY (place, session, file)
) STRICT, WITHOUT ROWID;

-- The card that lists show of a session, and the values that its next operation needs.
CREATE TABLE card (
  session INTEGER PRIMARY KEY,
  format  TEXT NOT NULL,                             -- again, so that a list needs no other table
  id      TEXT NOT NULL,
  title   TEXT,
  folder  TEXT,
  started INTEGER NOT NULL,
  active  INTEGER NOT NULL,
  turns   INTEGER NOT NULL,
  hidden  INTEGER NOT NULL,
  settled INTEGER NOT NULL,                          -- the newest operation in this store's chain that is no row of the journal
  state   BLOB NOT NULL                              -- the session's state after it; packed if it is long
) STRICT;
CREATE INDEX card_active ON card (active);
CREATE INDEX card_folder ON card (folder, active);
-- So that cards are counted without being read.
CREATE INDEX card_format ON card (format, hidden, active);
CREATE INDEX card_title ON card (title) WHERE title IS NOT NULL;

-- How much is held of an agent's sessions, without what waits in the journal.
CREATE TABLE total (
  format   TEXT PRIMARY KEY,
  sessions INTEGER NOT NULL,
  entries  INTEGER NOT NULL,
  bytes    INTEGER NOT NULL                          -- of their lines, as they arrived
) STRICT, WITHOUT ROWID;

-- A line that came and was taken out: where the one stands that took its place.
CREATE TABLE buried (
  tag     BLOB NOT NULL CHECK (length(tag) = 6),     -- of the id of the line that came
  session INTEGER NOT NULL,
  entry   INTEGER NOT NULL,
  PRIMARY KEY (tag, session, entry)
) STRICT, WITHOUT ROWID;

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
  line   INTEGER NOT NULL,                           -- the line's number
  rule   INTEGER NOT NULL,
  tokens BLOB NOT NULL,
  PRIMARY KEY (line, rule)
) STRICT, WITHOUT ROWID;

-- A cache: what lists show of the whole of a session, such as how many of its ends were reverted.
CREATE TABLE glance (
  session INTEGER PRIMARY KEY,
  glance  BLOB NOT NULL                              -- tagged; says after how many operations it was made
) STRICT;

-- Under which rules the derived rows were made.
CREATE TABLE rules (
  version INTEGER NOT NULL
) STRICT;
