-- Run once, as a superuser, in a folder with the two password files. Creates the account that owns and migrates the tables,
-- the account of services and workers, and the database, with the extension for vector search.
--   psql -f roles.sql "postgresql://postgres@HOST/postgres"
\set ON_ERROR_STOP on
\set owner_password `cat owner-password`
\set password `cat password`
CREATE ROLE remegraph LOGIN PASSWORD :'owner_password';
CREATE ROLE remegraph_app LOGIN PASSWORD :'password';
CREATE DATABASE remegraph OWNER remegraph;
\connect remegraph
CREATE EXTENSION vector;
