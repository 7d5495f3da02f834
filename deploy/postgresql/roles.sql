-- Once, as a superuser, in a folder that has the two passwords as files: the account that owns the tables and migrates them,
-- the one that services and workers have, and the database, with the extension that searches vectors.
--   psql -f roles.sql "postgresql://postgres@HOST/postgres"
\set ON_ERROR_STOP on
\set owner_password `cat owner-password`
\set password `cat password`
CREATE ROLE remegraph LOGIN PASSWORD :'owner_password';
CREATE ROLE remegraph_app LOGIN PASSWORD :'password';
CREATE DATABASE remegraph OWNER remegraph;
\connect remegraph
CREATE EXTENSION vector;
