-- What is known of campaigns beside their events, by `tapline campaign import`: docs/import.md.

CREATE SEQUENCE tapline.campaign_change;

CREATE TABLE tapline.campaign (
    app text NOT NULL CHECK (octet_length(app) BETWEEN 1 AND 128),
    campaign_id text NOT NULL CHECK (octet_length(campaign_id) BETWEEN 1 AND 128),
    name text,
    provider text,
    sent_at timestamptz,
    audience text,
    variant text,
    change bigint NOT NULL,
    PRIMARY KEY (app, campaign_id)
);
COMMENT ON TABLE tapline.campaign IS
    'Names of campaigns; looked up when a report is made, so a late one is in all reports';
COMMENT ON COLUMN tapline.campaign.sent_at IS 'when the sender says that it was sent; nothing is counted by it';
COMMENT ON COLUMN tapline.campaign.change IS
    'of tapline.campaign_change, under a lock of the table: rises with each import that changes anything';
CREATE INDEX campaign_change_index ON tapline.campaign (change);
COMMENT ON INDEX tapline.campaign_change_index IS 'serves the ETag of reports';
