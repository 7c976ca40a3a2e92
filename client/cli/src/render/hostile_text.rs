//! The property of everything that a terminal shows: characters in other people's text drive no terminal,
//! hide nothing and forge no line.

use cohabit_client::types::{
    AttemptRecord, CodeSnapshot, DeviceId, Enforcement, Health, JobLabels, JobRecord, ModelRecord, Models,
    NodeId, NodeRecord, NodeState, Outcome, OutputFiles, RefusedWorker, Sweep, TokenRecord,
};
use cohabit_console::{Colour, Screen};
use jiff::tz::TimeZone;

use super::job_sheet::job_sheet;
use super::jobs_table::{ColumnSet, jobs_table};
use super::models_table::models_sheet;
use super::nodes_table::{nodes_table, refused_workers};
use super::samples::{at, failed, nodes, running, tokens};
use super::tokens_table::tokens_table;

const SCREEN: Screen = Screen { width: None, colour: Colour::None };

/// Control characters, and those that are invisible or change the direction of others.
fn hostile_letters() -> impl Iterator<Item = char> {
    let controls = ('\0'..='\u{1f}').chain('\u{7f}'..='\u{9f}');
    let bidirectional =
        ('\u{200e}'..='\u{200f}').chain('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}');
    let selectors = ('\u{fe00}'..='\u{fe0f}').chain('\u{e0100}'..='\u{e01ef}');
    let others = ['\u{61c}', '\u{2028}', '\u{2029}', '\u{2060}', '\u{feff}', '\u{ad}'];
    controls
        .chain(bidirectional)
        .chain('\u{200b}'..='\u{200d}')
        .chain('\u{e0000}'..='\u{e007f}')
        .chain(selectors)
        .chain(others)
}

/// Asserts that a rendering shows the code of each such letter instead of the letter, in the same line.
pub(crate) fn assert_printable(render: impl Fn(&str) -> String) {
    let lines = render("ab").lines().count();
    for letter in hostile_letters() {
        let shown = render(&format!("a{letter}b"));
        let code: String = letter.escape_default().collect();
        assert!(shown.contains(&code), "{code} is not in {shown:?}");
        assert!(letter == '\n' || !shown.contains(letter), "{code} is unescaped in {shown:?}");
        assert_eq!(shown.lines().count(), lines, "{code} changes the lines of {shown:?}");
    }
}

fn attempt(attempt: AttemptRecord, text: &str) -> AttemptRecord {
    let ranks = attempt.ranks.into_iter().map(|mut rank| {
        rank.node = text.to_owned();
        rank.devices = vec![DeviceId(text.into())];
        rank.enforcement = Some(Enforcement::Unenforced(text.to_owned()));
        rank.host_limits = Some(Enforcement::Unenforced(text.to_owned()));
        rank.outcome = Some(Outcome::Lost(text.to_owned()));
        rank
    });
    AttemptRecord { ranks: ranks.collect(), ..attempt }
}

/// A job with this text wherever a user or a worker chooses one.
pub(crate) fn job(job: JobRecord, text: &str) -> JobRecord {
    let progress = job.progress.map(|mut progress| {
        progress.metrics = [(text.to_owned(), 0.5.into())].into();
        progress
    });
    JobRecord {
        name: text.to_owned(),
        user: text.to_owned(),
        group: Some(text.to_owned()),
        reason: text.to_owned(),
        work: text.to_owned(),
        shell_command: Some(text.to_owned()),
        workdir: text.to_owned(),
        code: job.code.map(|code| CodeSnapshot { folder: text.to_owned(), ..code }),
        attempts: job.attempts.into_iter().map(|it| attempt(it, text)).collect(),
        progress,
        labels: JobLabels {
            partition: Some(text.to_owned()),
            entry: Some(text.to_owned()),
            checkpoint: Some(text.to_owned()),
            output: OutputFiles { stdout: Some(text.to_owned()), stderr: None },
            sweep: Some(Sweep { metric: Some(text.to_owned()), ..Sweep::default() }),
        },
        ..job
    }
}

/// A node with this text wherever a worker chooses one.
pub(crate) fn node(mut node: NodeRecord, text: &str) -> NodeRecord {
    for device in &mut node.devices {
        device.device.id = DeviceId(text.into());
        device.device.model = text.to_owned();
        device.device.condition.health = Health::Fenced(text.to_owned());
        if let Some(gpu) = &mut device.device.gpu {
            gpu.driver = text.to_owned();
            gpu.peers.iter_mut().for_each(|peer| peer.device = DeviceId(text.into()));
        }
    }
    let problem = (node.state == NodeState::Paused).then(|| text.to_owned());
    let (name, address, build) = (text.to_owned(), text.to_owned(), text.to_owned());
    NodeRecord { name, address, build, problem, ..node }
}

#[test]
fn tables_and_sheets_of_jobs_show_codes_of_characters_that_are_not_visible() {
    for record in [running(), failed()] {
        for columns in [ColumnSet::Usual, ColumnSet::Wide] {
            assert_printable(|text| {
                jobs_table(&[job(record.clone(), text)], columns, at(100), &TimeZone::UTC, SCREEN)
            });
        }
        assert_printable(|text| job_sheet(&job(record.clone(), text), &[], at(100), &TimeZone::UTC));
    }
}

#[test]
fn tables_of_nodes_and_tokens_show_codes_of_characters_that_are_not_visible() {
    for columns in [ColumnSet::Usual, ColumnSet::Wide] {
        assert_printable(|text| {
            let nodes: Vec<_> = nodes().into_iter().map(|it| node(it, text)).collect();
            nodes_table(&nodes, columns, &TimeZone::UTC, SCREEN)
        });
    }
    assert_printable(|text| {
        let (node, address) = (Default::default(), text.to_owned());
        let refused = RefusedWorker { node: NodeId(node), address, at: at(0), times: 1 };
        refused_workers(&[], &[refused], &TimeZone::UTC)
    });
    assert_printable(|text| {
        let rename = |token| TokenRecord {
            name: text.to_owned(),
            account: Some(text.to_owned()),
            node: Some(text.to_owned()),
            ..token
        };
        tokens_table(&tokens().into_iter().map(rename).collect::<Vec<_>>(), &TimeZone::UTC, SCREEN)
    });
}

#[test]
fn the_sheet_of_models_shows_codes_of_characters_that_are_not_visible() {
    assert_printable(|text| {
        let version = ModelRecord {
            version: 1,
            kind: text.to_owned(),
            base: text.to_owned(),
            trained_at: at(0),
            rows: 1,
            validation_rows: 1,
            error: 0.1,
            error_before: 0.2,
        };
        let (base, failure) = (text.to_owned(), Some(text.to_owned()));
        let models = Models { base, failure, versions: vec![version], ..Models::default() };
        models_sheet(&models, &TimeZone::UTC, SCREEN)
    });
}
