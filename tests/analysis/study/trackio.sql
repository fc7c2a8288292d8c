BEGIN TRANSACTION;
CREATE TABLE alerts (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,
                        run_id TEXT NOT NULL,
                        timestamp TEXT NOT NULL,
                        run_name TEXT NOT NULL,
                        title TEXT NOT NULL,
                        text TEXT,
                        level TEXT NOT NULL DEFAULT 'warn',
                        step INTEGER,
                        alert_id TEXT
                    );
CREATE TABLE artifact_aliases (
                        artifact_id INTEGER NOT NULL REFERENCES artifacts(id),
                        alias TEXT NOT NULL,
                        artifact_version_id INTEGER NOT NULL REFERENCES artifact_versions(id),
                        PRIMARY KEY (artifact_id, alias)
                    );
CREATE TABLE artifact_versions (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,
                        artifact_id INTEGER NOT NULL REFERENCES artifacts(id),
                        version INTEGER NOT NULL,
                        manifest_digest TEXT NOT NULL,
                        manifest TEXT NOT NULL,
                        metadata TEXT,
                        size_bytes INTEGER NOT NULL,
                        producer_run_id TEXT,
                        producer_run_name TEXT,
                        created_at TEXT NOT NULL,
                        UNIQUE(artifact_id, version),
                        UNIQUE(artifact_id, manifest_digest)
                    );
CREATE TABLE artifacts (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,
                        name TEXT NOT NULL UNIQUE,
                        type TEXT NOT NULL,
                        description TEXT,
                        created_at TEXT NOT NULL
                    );
CREATE TABLE configs (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,
                        run_id TEXT NOT NULL,
                        run_name TEXT NOT NULL,
                        config TEXT NOT NULL,
                        created_at TEXT NOT NULL,
                        UNIQUE(run_id)
                    );
INSERT INTO "configs" VALUES(1,'a42f59cd62ca478dbaf47e1c5b1ce724','a-1',X'7B226C72223A302E3030312C225F557365726E616D65223A6E756C6C2C225F43726561746564223A22323032362D31312D32375431373A30353A30312E3533383935322B30303A3030222C225F47726F7570223A6E756C6C7D','2026-11-27T17:05:01.604026+00:00');
INSERT INTO "configs" VALUES(2,'3ced8b407bd64e01a0aae5743baf2a14','b-1',X'7B226C72223A302E3030312C225F557365726E616D65223A6E756C6C2C225F43726561746564223A22323032362D31312D32375431373A30353A30312E3634393538372B30303A3030222C225F47726F7570223A6E756C6C7D','2026-11-27T17:05:01.692052+00:00');
CREATE TABLE external_run_artifact_links (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,
                        run_id TEXT,
                        run_name TEXT,
                        source_project TEXT NOT NULL,
                        source_version_id INTEGER NOT NULL,
                        source_artifact TEXT NOT NULL,
                        source_type TEXT NOT NULL,
                        source_version INTEGER NOT NULL,
                        source_size_bytes INTEGER NOT NULL,
                        direction TEXT NOT NULL CHECK(direction IN ('input', 'output')),
                        created_at TEXT NOT NULL
                    );
CREATE TABLE metrics (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,
                        run_id TEXT NOT NULL,
                        timestamp TEXT NOT NULL,
                        run_name TEXT NOT NULL,
                        step INTEGER NOT NULL,
                        metrics TEXT NOT NULL
                    , log_id TEXT, space_id TEXT);
INSERT INTO "metrics" VALUES(1,'a42f59cd62ca478dbaf47e1c5b1ce724','2026-11-27T17:05:01.543602+00:00','a-1',1,X'7B22747261696E2F726577617264223A302E312C226E6F7465223A223C7363726970743E616C6572742831293C2F7363726970743E227D','1503dd50bb7c4ee9b6a40be73d2277d1',NULL);
INSERT INTO "metrics" VALUES(2,'a42f59cd62ca478dbaf47e1c5b1ce724','2026-11-27T17:05:01.543602+00:00','a-1',2,X'7B22747261696E2F726577617264223A302E32352C226E6F7465223A223C7363726970743E616C6572742831293C2F7363726970743E227D','05063948a2614457959746a851506b29',NULL);
INSERT INTO "metrics" VALUES(3,'a42f59cd62ca478dbaf47e1c5b1ce724','2026-11-27T17:05:01.543602+00:00','a-1',3,X'7B22747261696E2F726577617264223A302E352C226E6F7465223A223C7363726970743E616C6572742831293C2F7363726970743E227D','16da40948e7e41299426a4970e85d725',NULL);
INSERT INTO "metrics" VALUES(4,'a42f59cd62ca478dbaf47e1c5b1ce724','2026-11-27T17:05:01.543602+00:00','a-1',3,X'7B226C6F7373223A224E614E222C226E6573746564223A7B2278223A322E307D7D','a4802314d5ad49daa1cf984410045b28',NULL);
INSERT INTO "metrics" VALUES(5,'3ced8b407bd64e01a0aae5743baf2a14','2026-11-27T17:05:01.655328+00:00','b-1',1,X'7B22747261696E2F726577617264223A302E312C226E6F7465223A223C7363726970743E616C6572742831293C2F7363726970743E227D','79487eb2e2c2412393759b0e3a78382a',NULL);
INSERT INTO "metrics" VALUES(6,'3ced8b407bd64e01a0aae5743baf2a14','2026-11-27T17:05:01.655328+00:00','b-1',2,X'7B22747261696E2F726577617264223A302E32352C226E6F7465223A223C7363726970743E616C6572742831293C2F7363726970743E227D','a539d8c351794edfb8059f934a966431',NULL);
INSERT INTO "metrics" VALUES(7,'3ced8b407bd64e01a0aae5743baf2a14','2026-11-27T17:05:01.655328+00:00','b-1',3,X'7B22747261696E2F726577617264223A302E342C226E6F7465223A223C7363726970743E616C6572742831293C2F7363726970743E227D','9f6d9da6efd846ed886b0f04719e3267',NULL);
INSERT INTO "metrics" VALUES(8,'3ced8b407bd64e01a0aae5743baf2a14','2026-11-27T17:05:01.655328+00:00','b-1',3,X'7B226C6F7373223A224E614E222C226E6573746564223A7B2278223A322E307D7D','f207222eed464bf9a9934d0dcfa5674c',NULL);
CREATE TABLE pending_uploads (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,
                        space_id TEXT NOT NULL,
                        run_id TEXT,
                        run_name TEXT,
                        step INTEGER,
                        file_path TEXT NOT NULL,
                        relative_path TEXT,
                        created_at TEXT NOT NULL
                    , kind TEXT NOT NULL DEFAULT 'media', digest TEXT);
CREATE TABLE project_metadata (
                        key TEXT PRIMARY KEY,
                        value TEXT NOT NULL
                    );
CREATE TABLE run_artifact_links (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,
                        run_id TEXT,
                        run_name TEXT,
                        run_project TEXT,
                        artifact_version_id INTEGER NOT NULL REFERENCES artifact_versions(id),
                        direction TEXT NOT NULL CHECK(direction IN ('input', 'output')),
                        created_at TEXT NOT NULL
                    );
CREATE TABLE system_metrics (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,
                        run_id TEXT NOT NULL,
                        timestamp TEXT NOT NULL,
                        run_name TEXT NOT NULL,
                        metrics TEXT NOT NULL
                    , log_id TEXT, space_id TEXT);
CREATE TABLE traces (
                        id TEXT PRIMARY KEY,
                        run_id TEXT NOT NULL,
                        timestamp TEXT NOT NULL,
                        run_name TEXT NOT NULL,
                        step INTEGER NOT NULL,
                        key TEXT NOT NULL,
                        trace_index INTEGER,
                        messages TEXT NOT NULL,
                        metadata TEXT NOT NULL,
                        search_text TEXT NOT NULL,
                        log_id TEXT,
                        space_id TEXT,
                        spans TEXT NOT NULL DEFAULT '[]'
                    );
CREATE INDEX idx_run_artifact_links_run
                    ON run_artifact_links(run_id, run_name)
                    ;
CREATE INDEX idx_run_artifact_links_name
                    ON run_artifact_links(run_name, run_id)
                    ;
CREATE INDEX idx_run_artifact_links_version
                    ON run_artifact_links(artifact_version_id)
                    ;
CREATE INDEX idx_run_artifact_links_project_run
                    ON run_artifact_links(run_project, run_id, run_name);
CREATE INDEX idx_external_artifact_links_run
                    ON external_run_artifact_links(run_id, run_name);
CREATE UNIQUE INDEX idx_external_artifact_links_unique
                    ON external_run_artifact_links(
                        COALESCE(run_id, ''), COALESCE(run_name, ''),
                        source_project, source_version_id, direction
                    );
CREATE INDEX idx_pending_uploads_kind
                    ON pending_uploads(kind)
                    ;
CREATE INDEX idx_metrics_run_step
                    ON metrics(run_id, step)
                    ;
CREATE INDEX idx_metrics_run_timestamp
                    ON metrics(run_id, timestamp)
                    ;
CREATE INDEX idx_configs_run_name
                    ON configs(run_name)
                    ;
CREATE INDEX idx_system_metrics_run_timestamp
                    ON system_metrics(run_id, timestamp)
                    ;
CREATE INDEX idx_traces_run_step
                    ON traces(run_id, step)
                    ;
CREATE INDEX idx_traces_run_timestamp
                    ON traces(run_id, timestamp)
                    ;
CREATE INDEX idx_traces_search
                    ON traces(search_text)
                    ;
CREATE INDEX idx_alerts_run
                    ON alerts(run_id)
                    ;
CREATE INDEX idx_alerts_timestamp
                    ON alerts(timestamp)
                    ;
CREATE UNIQUE INDEX idx_alerts_alert_id
                    ON alerts(alert_id) WHERE alert_id IS NOT NULL
                    ;
CREATE UNIQUE INDEX idx_metrics_log_id
                        ON metrics(log_id) WHERE log_id IS NOT NULL;
CREATE INDEX idx_metrics_pending
                        ON metrics(space_id) WHERE space_id IS NOT NULL;
CREATE UNIQUE INDEX idx_system_metrics_log_id
                        ON system_metrics(log_id) WHERE log_id IS NOT NULL;
CREATE INDEX idx_system_metrics_pending
                        ON system_metrics(space_id) WHERE space_id IS NOT NULL;
CREATE INDEX idx_metrics_run_record
                        ON metrics(run_id, run_name, timestamp);
CREATE UNIQUE INDEX idx_run_artifact_links_unique
                    ON run_artifact_links(
                        COALESCE(run_project, ''), COALESCE(run_id, ''),
                        COALESCE(run_name, ''), artifact_version_id, direction
                    );
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('metrics',8);
INSERT INTO "sqlite_sequence" VALUES('configs',2);
COMMIT;
