-- Cells have a row for nearly every unit where there are many quarters and dimensions. A report by a
-- dimension and a campaign knows no time, one by a dimension and time no campaign.
CREATE TABLE tapline.cell_dimension (LIKE tapline.cell INCLUDING COMMENTS);
ALTER TABLE tapline.cell_dimension DROP quarter;
COMMENT ON TABLE tapline.cell_dimension IS
    'tapline.cell of all time: serves reports by dimensions without a period';
CREATE TABLE tapline.cell_time (LIKE tapline.cell INCLUDING COMMENTS);
ALTER TABLE tapline.cell_time DROP campaign_id;
COMMENT ON TABLE tapline.cell_time IS
    'tapline.cell of all campaigns: serves reports by dimensions and time';

-- The functions that fill them are made after the migrations, from sql/cells/. Until then nobody merges:
-- what a daemon of an older version merged would be missing in the sums.
SELECT pg_advisory_xact_lock(hashtextextended('tapline.cells', 0));
DROP FUNCTION tapline.merge_cells, tapline.rebuild_cells;
INSERT INTO tapline.cell_dimension (segment, states, units, clicks, late, app, campaign_id,
    platform, app_version, os_version, locale, country, provider)
SELECT segment, states, sum(units), sum(clicks), sum(late), app, campaign_id,
    platform, app_version, os_version, locale, country, provider
FROM tapline.cell GROUP BY segment, states, app, campaign_id,
    platform, app_version, os_version, locale, country, provider;
INSERT INTO tapline.cell_time (segment, quarter, states, units, clicks, late, app,
    platform, app_version, os_version, locale, country, provider)
SELECT segment, quarter, states, sum(units), sum(clicks), sum(late), app,
    platform, app_version, os_version, locale, country, provider
FROM tapline.cell GROUP BY segment, quarter, states, app,
    platform, app_version, os_version, locale, country, provider;
ANALYZE tapline.cell_dimension, tapline.cell_time
