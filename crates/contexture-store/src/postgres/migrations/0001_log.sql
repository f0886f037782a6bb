-- Streams and their entries. Nothing is read or written but through the functions below and by
-- single statements, so that an append is one round trip and one transaction.

-- Whoever changes a stream locks its row first. That gives a stream its one order.
CREATE TABLE contexture.streams (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind    text COLLATE "C" NOT NULL,
    key     text COLLATE "C" NOT NULL,
    tail    text COLLATE "C",
    entries bigint NOT NULL DEFAULT 0,
    bytes   bigint NOT NULL DEFAULT 0,
    updated timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (kind, key)
);

-- Positions count from 1 without a gap. The body is text: jsonb would change its bytes.
CREATE TABLE contexture.entries (
    stream   bigint NOT NULL REFERENCES contexture.streams ON DELETE CASCADE,
    position bigint NOT NULL,
    id       text COLLATE "C" NOT NULL,
    body     text NOT NULL,
    PRIMARY KEY (stream, position),
    UNIQUE (stream, id)
);

-- An id that is too long for an index is kept as a hash; then the body has to say what it is.
CREATE FUNCTION contexture.long_body(in_stream bigint, in_id text) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN left(in_id, 2) = '%#' THEN
        (SELECT e.body FROM contexture.entries e WHERE e.stream = in_stream AND e.id = in_id)
    END
$$;

-- Locks a stream's row until the transaction ends; makes it where it is missing and wanted.
CREATE FUNCTION contexture.take(in_kind text, in_key text, in_create boolean)
RETURNS contexture.streams LANGUAGE plpgsql AS $$
DECLARE
    s contexture.streams;
BEGIN
    LOOP
        SELECT t.* INTO s FROM contexture.streams t
            WHERE t.kind = in_kind AND t.key = in_key FOR UPDATE;
        EXIT WHEN FOUND OR NOT in_create;
        -- Somebody else may make it, or remove it again, in the meantime: hence the loop.
        INSERT INTO contexture.streams (kind, key) VALUES (in_kind, in_key)
            ON CONFLICT DO NOTHING;
    END LOOP;
    RETURN s;
END
$$;

-- Appends what the stream does not have yet. The outcome is
--   ok       with the stream's tail;
--   tail     it ends elsewhere: its tail, and which record (from 1) is the first new one;
--   differs  these records' ids are there with another text, which is returned. Whether it says the
--            same is for the caller to find out, who then sends the text that is there.
CREATE FUNCTION contexture.append(
    in_kind text, in_key text, in_any boolean, in_expected text, in_ids text[], in_bodies text[]
) RETURNS TABLE (outcome text, at bigint, body text, tail text, long_body text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    s         contexture.streams;
    known     text[];
    first_new bigint;
    wanted    text;
BEGIN
    s := contexture.take(in_kind, in_key, in_any OR in_expected IS NULL);
    IF s.id IS NULL THEN
        RETURN QUERY SELECT 'tail', 1::bigint, NULL::text, NULL::text, NULL::text;
        RETURN;
    END IF;
    -- A subquery for each id, and no join: a plan made when the table was small must not read all
    -- of it later.
    SELECT array_agg(
        (SELECT e.body FROM contexture.entries e WHERE e.stream = s.id AND e.id = n.id)
        ORDER BY n.at
    ) INTO known FROM unnest(in_ids) WITH ORDINALITY AS n (id, at);

    RETURN QUERY SELECT 'differs', n.at, n.known, NULL::text, NULL::text
        FROM unnest(in_bodies, known) WITH ORDINALITY AS n (body, known, at)
        WHERE n.known <> n.body;
    IF FOUND THEN
        RETURN;
    END IF;

    first_new := (SELECT min(n.at) FROM unnest(known) WITH ORDINALITY AS n (known, at)
        WHERE n.known IS NULL);
    IF first_new IS NOT NULL THEN
        wanted := CASE WHEN first_new > 1 THEN in_ids[first_new - 1] ELSE in_expected END;
        IF NOT in_any AND wanted IS DISTINCT FROM s.tail THEN
            RETURN QUERY SELECT 'tail', first_new, NULL::text, s.tail::text,
                contexture.long_body(s.id, s.tail);
            RETURN;
        END IF;
        WITH fresh AS (
            SELECT DISTINCT ON (n.id) n.id, n.body, n.at
            FROM unnest(in_ids, in_bodies, known) WITH ORDINALITY AS n (id, body, known, at)
            WHERE n.known IS NULL ORDER BY n.id, n.at
        ), added AS (
            INSERT INTO contexture.entries (stream, position, id, body)
            SELECT s.id, s.entries + row_number() OVER (ORDER BY f.at), f.id, f.body FROM fresh f
            RETURNING position, id, octet_length(body) + 1 AS bytes
        )
        UPDATE contexture.streams t SET
            tail = (SELECT a.id FROM added a ORDER BY a.position DESC LIMIT 1),
            entries = t.entries + (SELECT count(*) FROM added),
            bytes = t.bytes + (SELECT sum(a.bytes) FROM added a),
            updated = clock_timestamp()
        WHERE t.id = s.id RETURNING t.tail INTO s.tail;
    END IF;
    RETURN QUERY SELECT 'ok', NULL::bigint, NULL::text, s.tail::text,
        contexture.long_body(s.id, s.tail);
END
$$;

-- Puts records in the place of all that a stream has. The stream gets a new id, so that whoever is
-- reading it notices.
CREATE FUNCTION contexture.replace(
    in_kind text, in_key text, in_any boolean, in_expected text, in_ids text[], in_bodies text[]
) RETURNS TABLE (outcome text, tail text, long_body text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    s      contexture.streams;
    ids    text[];
    bodies text[];
BEGIN
    s := contexture.take(in_kind, in_key, in_any OR in_expected IS NULL);
    IF s.entries = cardinality(in_ids) THEN
        SELECT array_agg(e.id ORDER BY e.position), array_agg(e.body ORDER BY e.position)
            INTO ids, bodies FROM contexture.entries e WHERE e.stream = s.id;
        -- This call again, after its answer was lost.
        IF coalesce(ids, '{}') = in_ids AND coalesce(bodies, '{}') = in_bodies THEN
            RETURN QUERY SELECT 'ok', NULL::text, NULL::text;
            RETURN;
        END IF;
    END IF;
    IF NOT in_any AND in_expected IS DISTINCT FROM s.tail THEN
        RETURN QUERY SELECT 'tail', s.tail::text, contexture.long_body(s.id, s.tail);
        RETURN;
    END IF;
    DELETE FROM contexture.entries e WHERE e.stream = s.id;
    UPDATE contexture.streams t SET
        id = DEFAULT,
        tail = in_ids[cardinality(in_ids)],
        entries = cardinality(in_ids),
        bytes = (SELECT coalesce(sum(octet_length(b) + 1), 0) FROM unnest(in_bodies) AS b),
        updated = clock_timestamp()
    WHERE t.id = s.id RETURNING t.id INTO s.id;
    INSERT INTO contexture.entries (stream, position, id, body)
        SELECT s.id, n.at, n.id, n.body
        FROM unnest(in_ids, in_bodies) WITH ORDINALITY AS n (id, body, at);
    RETURN QUERY SELECT 'ok', NULL::text, NULL::text;
END
$$;
