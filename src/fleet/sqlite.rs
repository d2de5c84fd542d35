//! A fleet as an SQLite database.

use std::path::Path;

use rusqlite::{Connection, params};

use crate::report::FleetReport;

/// The tables, with a comment at each; docs/fleet.md shows them.
pub const TABLES: &str = include_str!("tables.sql");

/// Writes a fleet to a database file, which is replaced in one step.
///
/// # Errors
/// Those of the system and of SQLite, in words.
pub fn write_sqlite(report: &FleetReport, path: &Path) -> Result<(), String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = tempfile::Builder::new().prefix(".mxprobe-").tempfile_in(folder).map_err(|error| error.to_string())?;
    let mut database = Connection::open(file.path()).map_err(|error| error.to_string())?;
    fill(&mut database, report).map_err(|error| error.to_string())?;
    database.close().map_err(|(_, error)| error.to_string())?;
    file.persist(path).map_err(|error| error.error.to_string())?;
    Ok(())
}

/// A count as SQLite holds it.
fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn fill(database: &mut Connection, report: &FleetReport) -> rusqlite::Result<()> {
    // Nobody reads the file before it is whole, and a crash leaves nothing to recover.
    database.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")?;
    let all = database.transaction()?;
    all.execute_batch(TABLES)?;
    all.execute(
        "INSERT INTO fleet VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            report.schema,
            report.time,
            report.tool.version,
            number(report.reports),
            number(report.screens),
            number(report.nodes)
        ],
    )?;
    for member in &report.members {
        let verdict = member.verdict.map(|verdict| verdict.name());
        all.prepare_cached("INSERT INTO device VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?.execute(params![
            member.node,
            member.selector,
            member.backend,
            member.fingerprint,
            member.driver,
            member.class,
            verdict
        ])?;
    }
    for kind in &report.kinds {
        for (at, class) in kind.classes.iter().enumerate() {
            all.prepare_cached("INSERT INTO class VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(params![
                kind.backend,
                kind.fingerprint,
                class.class,
                number(class.devices),
                at == 0
            ])?;
            for differs in &class.differs {
                all.prepare_cached("INSERT INTO difference VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?.execute(params![
                    kind.backend,
                    kind.fingerprint,
                    class.class,
                    differs.operation,
                    differs.probe,
                    differs.usual,
                    differs.here
                ])?;
            }
        }
    }
    for device in &report.unhealthy {
        for what in &device.what {
            all.prepare_cached("INSERT INTO unhealthy VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(params![
                device.node,
                device.selector,
                device.verdict.name(),
                device.start,
                what
            ])?;
        }
    }
    for change in report.since.iter().flat_map(|since| &since.changed) {
        all.prepare_cached("INSERT INTO change VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(params![
            change.node,
            change.selector,
            change.what,
            change.before,
            change.now
        ])?;
    }
    for file in &report.skipped {
        all.prepare_cached("INSERT INTO skipped VALUES (?1, ?2)")?.execute(params![file.path, file.reason])?;
    }
    all.commit()
}
