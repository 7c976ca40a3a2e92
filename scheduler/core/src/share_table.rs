//! The table of shares: checked as a whole, and applied as a whole.

use std::collections::BTreeSet;

use cohabit_types::{Refusal, RefusalCode, Reply, ShareTable, Span, counted};

use crate::head::Head;
use crate::transition::Transition;

/// The most projects, and the most users in all of them.
const MOST_PROJECTS: usize = 1_000;
const MOST_USERS: usize = 10_000;
/// The longest name, in bytes.
const LONGEST_NAME: usize = 256;
/// How many characters of a wrong name a refusal repeats.
const LONGEST_SHOWN: usize = 64;
/// The bounds of a half-life: use that is forgotten sooner would not order anything, and a century is enough.
const HALF_LIFE: (Span, Span) = (Span::from_secs(3_600), Span::from_secs(36_525 * 86_400));
/// The longest time for which a job is not reclaimed.
const LONGEST_KEPT: Span = Span::from_secs(30 * 86_400);
/// The largest weight and the largest price, in thousandths.
const LARGEST: u32 = 1_000_000;

impl Head {
    /// Whether the cluster can be divided by this table.
    pub(crate) fn check_shares(&self, table: &ShareTable) -> Result<(), Refusal> {
        let refused = |message: String| Err(Refusal::new(RefusalCode::Invalid, message));
        let (least, most) = HALF_LIFE;
        if table.half_life < least || table.half_life > most {
            return refused(format!(
                "half-life is {}, and must be from {least} to {most}: write \"7d\" for a week",
                table.half_life
            ));
        }
        if table.projects.len() > MOST_PROJECTS || table.prices.len() > MOST_PROJECTS {
            return refused(format!(
                "the table has {} and {}, and at most {MOST_PROJECTS} of each are allowed",
                counted(table.projects.len(), "project", "projects"),
                counted(table.prices.len(), "price", "prices"),
            ));
        }
        check_names(table)?;
        if let Some((model, price)) = table.prices.iter().find(|(_, price)| !(1..=LARGEST).contains(*price)) {
            let price = f64::from(*price) / 1_000.0;
            return refused(format!("the price of {model} is {price}, and must be from 0.001 to 1000"));
        }
        let mut users: BTreeSet<&str> = BTreeSet::new();
        for (name, project) in &table.projects {
            if !(1..=LARGEST).contains(&project.weight) {
                let weight = f64::from(project.weight) / 1_000.0;
                return refused(format!(
                    "the weight of project {name} is {weight}, and must be from 0.001 to 1000"
                ));
            }
            if let Some(user) = project.users.iter().find(|user| !users.insert(user)) {
                let other = table.project_of(user).unwrap_or_default();
                return refused(format!(
                    "user {user} is in the projects {other} and {name}: leave them in one"
                ));
            }
        }
        if users.len() > MOST_USERS {
            return refused(format!(
                "the table has {} users, and at most {MOST_USERS} are allowed",
                users.len()
            ));
        }
        check_parts_and_limits(table)?;
        let (promised, capacity) = (guaranteed_to_all(table), self.shared_capacity());
        if promised > capacity {
            return refused(format!(
                "{} GPUs are guaranteed, and the nodes that take jobs have {}: guarantee less, or apply the table once more \
                 nodes have joined",
                gpus(promised),
                gpus(capacity)
            ));
        }
        Ok(())
    }
}

/// Refuses parts that are larger than the whole, and limits under which nothing would ever run.
fn check_parts_and_limits(table: &ShareTable) -> Result<(), Refusal> {
    let refused = |message: String| Err(Refusal::new(RefusalCode::Invalid, message));
    if table.open_part > 1_000 {
        return refused(format!(
            "open-part is {}, and must be from 0 to 1",
            f64::from(table.open_part) / 1_000.0
        ));
    }
    if table.keep_for > LONGEST_KEPT {
        return refused(format!("keep-for is {}, and must be at most {LONGEST_KEPT}", table.keep_for));
    }
    let of_projects =
        table.projects.iter().map(|(name, project)| (format!("of project {name}"), project.running));
    for (whose, limits) in std::iter::once(("of each user".to_owned(), table.user.running)).chain(of_projects)
    {
        let setting = match (limits.gpus, limits.jobs) {
            (Some(0), _) => "running-gpus",
            (_, Some(0)) => "running-jobs",
            _ => continue,
        };
        return refused(format!(
            "{setting} {whose} is 0, so nothing would ever run: leave it out for no limit"
        ));
    }
    let nothing = match (table.user.queued_jobs, table.user.submits_per_minute) {
        (Some(0), _) => "queued-jobs",
        (_, Some(0)) => "submits-per-minute",
        _ => return Ok(()),
    };
    refused(format!(
        "{nothing} of each user is 0, so nobody could submit anything: leave it out for no limit"
    ))
}

/// Names come first: other refusals repeat them.
fn check_names(table: &ShareTable) -> Result<(), Refusal> {
    let users = table.projects.values().flat_map(|project| &project.users);
    let is_wrong =
        |name: &&String| name.is_empty() || name.len() > LONGEST_NAME || name.contains(char::is_control);
    match table.projects.keys().chain(table.prices.keys()).chain(users).find(is_wrong) {
        None => Ok(()),
        Some(name) => {
            let shown: String = name.chars().take(LONGEST_SHOWN).collect();
            let message = format!(
                "'{}' is no name: it must have 1 to {LONGEST_NAME} bytes and no control characters",
                shown.escape_debug()
            );
            Err(Refusal::new(RefusalCode::Invalid, message))
        }
    }
}

/// What is guaranteed to all projects together, in thousandths of a GPU.
fn guaranteed_to_all(table: &ShareTable) -> u64 {
    table.projects.values().fold(0, |sum, project| sum.saturating_add(project.guaranteed))
}

impl Transition<'_> {
    pub(crate) fn apply_shares(&mut self, table: ShareTable) -> Reply {
        self.head.shares.set_table(table, self.now);
        // Who is limited, and by how much, may be another now.
        self.head.volatile.user_queues = self.head.limited_queues();
        let all = self.head.all_ids();
        self.changed_ids.jobs.extend(all.jobs);
        self.head.replan_needed = true;
        Reply::SharesApplied
    }
}

/// Thousandths of a GPU with their unit.
pub(crate) fn counted_gpus(milli: u64) -> String {
    let amount = gpus(milli);
    if amount == "1" { "1 GPU".to_owned() } else { format!("{amount} GPUs") }
}

/// Thousandths of a GPU as people write them.
pub(crate) fn gpus(milli: u64) -> String {
    let tenths = milli.saturating_add(50) / 100;
    match tenths % 10 {
        0 => (tenths / 10).to_string(),
        tenth => format!("{}.{tenth}", tenths / 10),
    }
}
