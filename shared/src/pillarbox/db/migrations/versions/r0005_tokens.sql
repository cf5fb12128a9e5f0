-- After a restore a dispatcher of before may still run, and show the token of a lease that this database knows nothing
-- of. So whoever gives tokens out first brings them up to the microseconds of now, as `inbox_advance` does for rows.
CREATE FUNCTION inbox_advance_tokens() RETURNS void
LANGUAGE plpgsql
AS $advance$
BEGIN
    IF (SELECT s.last_value FROM lease_token s) < extract(epoch FROM clock_timestamp()) * 1000000 - 100000 THEN
        PERFORM inbox_set_tokens();
    END IF;
END
$advance$;

-- Never backwards: one at a time, and looked at again. Its owner's right is needed, as for `inbox_advance`.
DO $do$
BEGIN
    EXECUTE format($create$
CREATE FUNCTION inbox_set_tokens() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $set$
BEGIN
    -- Whoever holds it waits for nothing more before its commit.
    PERFORM pg_advisory_xact_lock(5785239086730335307);  -- "PILLADTK"
    IF (SELECT s.last_value FROM %1$s s) < extract(epoch FROM clock_timestamp()) * 1000000 - 100000 THEN
        PERFORM setval(%1$L, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint);
    END IF;
END
$set$
$create$, (SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
           WHERE c.oid = 'lease_token'::regclass));
END
$do$;
