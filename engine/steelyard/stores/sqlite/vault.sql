-- What makes an empty vault of a new file. Statements are parted by empty lines and run one by one. Columns are
-- the fields of an entry but its id, note is how the journal takes an entry that it lists already.
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT

CREATE TABLE entries(rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, {columns}) STRICT

CREATE INDEX entries_created ON entries(created_at)

CREATE INDEX entries_project ON entries(project)

-- Fields that few entries have: an entry outside a scope is found without reading all entries.
CREATE INDEX entries_kind ON entries(kind)

CREATE INDEX entries_valid_from ON entries(valid_from) WHERE valid_from IS NOT NULL

CREATE INDEX entries_valid_until ON entries(valid_until) WHERE valid_until IS NOT NULL

CREATE TABLE keyword_indexes(name TEXT PRIMARY KEY, fields TEXT NOT NULL, tokenizer TEXT NOT NULL) STRICT

CREATE TABLE spaces(space INTEGER PRIMARY KEY, model TEXT NOT NULL, layer TEXT NOT NULL, recipe TEXT NOT NULL,
  dim INTEGER NOT NULL, UNIQUE(model, layer, recipe)) STRICT

CREATE TABLE models(name TEXT PRIMARY KEY, kind TEXT NOT NULL, settings TEXT NOT NULL) STRICT

CREATE TABLE model_arrays(model TEXT NOT NULL REFERENCES models(name) ON DELETE CASCADE, name TEXT NOT NULL,
  data BLOB NOT NULL, PRIMARY KEY(model, name)) STRICT

INSERT INTO meta VALUES('revision', '0')

-- What a graph is searched by. Triggers keep it equal to the relations that are not only proposed.
CREATE TABLE edges(source TEXT NOT NULL, target TEXT NOT NULL, type TEXT NOT NULL, strength REAL) STRICT

CREATE INDEX edges_source ON edges(source)

CREATE INDEX edges_target ON edges(target)

CREATE TRIGGER edges_insert AFTER INSERT ON entries BEGIN
  INSERT INTO edges SELECT new.id, r.value ->> 1, r.value ->> 0, r.value ->> 2
  FROM json_each(new.relations) r WHERE r.value ->> 3 IN ('', 'accepted');
END

CREATE TRIGGER edges_delete AFTER DELETE ON entries BEGIN
  DELETE FROM edges WHERE source = old.id;
END

CREATE TRIGGER edges_update AFTER UPDATE OF id, relations ON entries BEGIN
  DELETE FROM edges WHERE source = old.id;
  INSERT INTO edges SELECT new.id, r.value ->> 1, r.value ->> 0, r.value ->> 2
  FROM json_each(new.relations) r WHERE r.value ->> 3 IN ('', 'accepted');
END

-- The revision at which each entry or one of its vectors changed last, also of entries that are gone. What is
-- computed from all entries is kept with its revision and brought up to date from here: in memory, or in the last
-- two tables, which hold the words of the entries (see words.py).
CREATE TABLE changes(entry INTEGER PRIMARY KEY, revision INTEGER NOT NULL) STRICT

CREATE INDEX changes_revision ON changes(revision)

CREATE TRIGGER changes_insert AFTER INSERT ON entries BEGIN
  INSERT INTO changes SELECT new.rowid, value + 1 FROM meta WHERE key = 'revision' {note};
END

CREATE TRIGGER changes_update AFTER UPDATE ON entries BEGIN
  INSERT INTO changes SELECT new.rowid, value + 1 FROM meta WHERE key = 'revision' {note};
END

CREATE TRIGGER changes_delete AFTER DELETE ON entries BEGIN
  INSERT INTO changes SELECT old.rowid, value + 1 FROM meta WHERE key = 'revision' {note};
END

CREATE TABLE word_indexes(number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, revision INTEGER NOT NULL,
  entries BLOB NOT NULL, lengths BLOB NOT NULL) STRICT

CREATE TABLE postings(number INTEGER NOT NULL, word TEXT NOT NULL, entries BLOB NOT NULL, counts BLOB NOT NULL,
  positions BLOB NOT NULL, PRIMARY KEY(number, word)) STRICT, WITHOUT ROWID
