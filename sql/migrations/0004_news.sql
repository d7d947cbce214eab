-- What daemons write for each other is not needed after a crash of the server: who misses it reads the
-- rows of the events. So it need not be in the WAL, which was a quarter more of it with two daemons.

DELETE FROM tapline.batch_news;
ALTER TABLE tapline.batch_news SET UNLOGGED;
COMMENT ON TABLE tapline.batch_news IS
    'The events of a batch of the open segment without their texts, for the daemons that did not load it; written while there are several, empty after a crash'
