-- Verdicts are counted for ever: what is taken away of the rows that they left is counted here, and
-- `tapline check` adds it to what the tables hold.

CREATE TABLE tapline.removed (
    term text PRIMARY KEY CHECK (term IN ('stored', 'conflict', 'dead_lettered')),
    events bigint NOT NULL DEFAULT 0 CHECK (events >= 0)
);
COMMENT ON TABLE tapline.removed IS
    'Events whose verdict stands and whose row was removed on purpose, by the term of law 4 that counts them';
INSERT INTO tapline.removed (term) VALUES ('stored'), ('conflict'), ('dead_lettered');
COMMENT ON COLUMN tapline.spool.dead_lettered IS
    'events of this spool that PostgreSQL refused; in the row of id 0, whose events are replayed dead letters, how many fewer there are for it'
