-- What the store says of itself: its id, when it was made.
CREATE TABLE setting (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

CREATE TABLE context (
    number     INTEGER PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    origin     TEXT NOT NULL CHECK (origin IN ('trusted', 'external')),
    created_at TEXT NOT NULL
) STRICT;

-- Embedders that vectors were made by. At most one is bound, at most one is being built beside it.
CREATE TABLE embedder (
    number     INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    dimensions INTEGER NOT NULL CHECK (dimensions > 0),
    state      TEXT NOT NULL CHECK (state IN ('bound', 'building')),
    created_at TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX embedder_state ON embedder (state);

-- AUTOINCREMENT: the number of a purged row is never given to another, or an index could take one for the other.
CREATE TABLE memory (
    row           INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_id     TEXT NOT NULL UNIQUE,
    context       INTEGER NOT NULL REFERENCES context (number),
    type          TEXT NOT NULL,
    scope         TEXT,
    key           TEXT,
    key_folded    TEXT,
    summary       TEXT NOT NULL,
    content       TEXT,
    tags          TEXT NOT NULL,
    metadata      TEXT NOT NULL,
    delivery_mode TEXT NOT NULL CHECK (delivery_mode IN ('on_recall', 'always', 'on_trigger')),
    trigger       TEXT,
    importance    REAL NOT NULL CHECK (importance BETWEEN 0 AND 1),
    confidence    REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    proof         TEXT,
    status        TEXT NOT NULL CHECK (status IN ('active', 'stale', 'retired', 'archived')),
    source_type   TEXT NOT NULL CHECK (source_type IN ('manual', 'import', 'connector')),
    trust_tier    TEXT NOT NULL CHECK (trust_tier IN ('trusted', 'external')),
    derived_from  TEXT NOT NULL,
    superseded_by TEXT,
    session       TEXT,
    event_time    TEXT,
    expires_at    TEXT,
    created_at    TEXT NOT NULL,
    updated_at    TEXT NOT NULL,
    last_seen     TEXT,
    access_count  INTEGER NOT NULL DEFAULT 0,
    decay_rate    REAL NOT NULL CHECK (decay_rate BETWEEN 0 AND 1),
    version       INTEGER NOT NULL,
    text_version  INTEGER NOT NULL,
    embedded      INTEGER NOT NULL CHECK (embedded IN (0, 1)),
    fingerprint   BLOB NOT NULL,
    last_action   TEXT NOT NULL,
    last_door     TEXT NOT NULL,
    CHECK ((key IS NULL) = (key_folded IS NULL)),
    CHECK ((key IS NULL) = (scope IS NULL))
) STRICT;
CREATE INDEX memory_context ON memory (context);
CREATE INDEX memory_fingerprint ON memory (context, fingerprint);
-- One key, one memory. A retired memory gives its key free.
CREATE UNIQUE INDEX memory_key ON memory (context, scope, key_folded) WHERE key IS NOT NULL AND status <> 'retired';

-- Earlier states of memories: the row as it was from its updated_at until replaced_at.
CREATE TABLE revision (
    row           INTEGER NOT NULL,
    memory_id     TEXT NOT NULL,
    context       INTEGER NOT NULL,
    type          TEXT NOT NULL,
    scope         TEXT,
    key           TEXT,
    key_folded    TEXT,
    summary       TEXT NOT NULL,
    content       TEXT,
    tags          TEXT NOT NULL,
    metadata      TEXT NOT NULL,
    delivery_mode TEXT NOT NULL,
    trigger       TEXT,
    importance    REAL NOT NULL,
    confidence    REAL NOT NULL,
    proof         TEXT,
    status        TEXT NOT NULL,
    source_type   TEXT NOT NULL,
    trust_tier    TEXT NOT NULL,
    derived_from  TEXT NOT NULL,
    superseded_by TEXT,
    session       TEXT,
    event_time    TEXT,
    expires_at    TEXT,
    created_at    TEXT NOT NULL,
    updated_at    TEXT NOT NULL,
    last_seen     TEXT,
    access_count  INTEGER NOT NULL,
    decay_rate    REAL NOT NULL,
    version       INTEGER NOT NULL,
    text_version  INTEGER NOT NULL,
    embedded      INTEGER NOT NULL,
    fingerprint   BLOB NOT NULL,
    last_action   TEXT NOT NULL,
    last_door     TEXT NOT NULL,
    replaced_at   TEXT NOT NULL,
    PRIMARY KEY (row, version)
) STRICT;
CREATE INDEX revision_context ON revision (context, replaced_at);

-- That a purge happened, when and through which door: all that is left of a purged memory.
CREATE TABLE purged (
    memory_id TEXT PRIMARY KEY,
    context   INTEGER NOT NULL,
    purged_at TEXT NOT NULL,
    door      TEXT NOT NULL
) STRICT;

-- Revisions only grow (I9); what is purged is the one exception, and leaves its mark first.
CREATE TRIGGER revision_is_kept BEFORE DELETE ON revision
WHEN NOT EXISTS (SELECT 1 FROM purged WHERE purged.memory_id = OLD.memory_id)
BEGIN
    SELECT RAISE(ABORT, 'a revision is never deleted');
END;
CREATE TRIGGER revision_is_fixed BEFORE UPDATE ON revision
BEGIN
    SELECT RAISE(ABORT, 'a revision is never changed');
END;

-- The vectors of one text version by one embedder: n times dimensions little-endian f32, or why there are none.
CREATE TABLE embedding (
    row          INTEGER NOT NULL,
    text_version INTEGER NOT NULL,
    embedder     INTEGER NOT NULL REFERENCES embedder (number),
    vectors      BLOB,
    problem      TEXT,
    CHECK ((vectors IS NULL) = (problem IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX embedding_of ON embedding (embedder, row, text_version);
CREATE INDEX embedding_row ON embedding (row);

-- Words by which a repeated write is recognised: their hashes, since a word may quote a text that is purged later.
CREATE TABLE idempotency (
    context   INTEGER NOT NULL,
    word_hash BLOB NOT NULL,
    memory_id TEXT NOT NULL,
    PRIMARY KEY (context, word_hash)
) STRICT, WITHOUT ROWID;

-- What an index follows: after change `number`, look again at this row.
CREATE TABLE change (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    context   INTEGER NOT NULL,
    row       INTEGER NOT NULL,
    memory_id TEXT NOT NULL
) STRICT;
