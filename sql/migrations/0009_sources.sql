-- What the requests of sources need to be understood: docs/sources.md.

CREATE TABLE tapline.app_alias (
    alias text PRIMARY KEY CHECK (octet_length(alias) BETWEEN 1 AND 128),
    app text NOT NULL,
    is_open boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE tapline.app_alias IS
    'Ids that vendors gave to apps, each of one app of ours; daemons read them again every two seconds';
COMMENT ON COLUMN tapline.app_alias.is_open IS 'whether calls that name it need no key';
