-- What daemons write for each other was one value of 3 MB a batch, which the server cut into 1,500 pieces with an index
-- entry each, and wrote several times, as the space of deleted ones was not found again while daemons load. Now it comes in
-- pieces that fill a page; a daemon of an older version writes one large piece, and reads the rows of what others wrote.
ALTER TABLE tapline.batch_news ADD COLUMN piece integer NOT NULL DEFAULT 0;
ALTER TABLE tapline.batch_news DROP CONSTRAINT batch_news_pkey, ADD PRIMARY KEY (batch, piece);
COMMENT ON COLUMN tapline.batch_news.piece IS
    'The place of the bytes among those of the batch, which are all that of a batch, one after the other';
-- A row of a page stays in it. The space of deleted ones is kept for the next.
DO $$
BEGIN
    EXECUTE format('ALTER TABLE tapline.batch_news SET (toast_tuple_target = %s, vacuum_truncate = false)',
        current_setting('block_size')::integer - 32);
END
$$;
