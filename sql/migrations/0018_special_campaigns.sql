-- Loaders fill it in where they know it; what they know includes events of earlier segments. What was noted before
-- may be of events that count with another unit (of an inbox, or without a device): it is found anew.
UPDATE tapline.special_unit SET campaigns = NULL WHERE campaigns IS NOT NULL;
COMMENT ON COLUMN tapline.special_unit.campaigns IS
    'among these are the campaigns that events of the unit in the segment name; null: not known'
