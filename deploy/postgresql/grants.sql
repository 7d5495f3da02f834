-- Run as the owner, after the first `remegraph migrate --apply` with the final REMEGRAPH_QUEUE. Safe to run again.
--   psql -v ON_ERROR_STOP=1 -f grants.sql "postgresql://remegraph@HOST/remegraph"
GRANT USAGE ON SCHEMA public TO remegraph_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO remegraph_app;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO remegraph_app;
REVOKE INSERT, UPDATE, DELETE ON remegraph_schema FROM remegraph_app;
-- From PostgreSQL 17 on, so that an erasure can VACUUM and, with --full, rewrite the tables:
DO $$ BEGIN
  IF current_setting('server_version_num')::int >= 170000 THEN
    GRANT MAINTAIN ON ALL TABLES IN SCHEMA public TO remegraph_app;
    ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT MAINTAIN ON TABLES TO remegraph_app;
  END IF;
END $$;
-- For tables and sequences that later releases add:
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO remegraph_app;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE ON SEQUENCES TO remegraph_app;
