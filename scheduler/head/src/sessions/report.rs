//! What users and projects had over some days: the sums of the history, and what runs now.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_scheduler_core::{AccountOwner, LiveAccount};
use cohabit_types::{
    Refusal, RefusalCode, Role, ShareTable, Slowdown, Time, UsageAmounts, UsageDay, UsageGrouping,
    UsageReport, UsageReportRequest, UsageReportRow, UsageSums,
};

use super::client::ClientSession;
use crate::clock::wall_clock;
use crate::driver::Query;
use crate::history::{AccountDays, AppliedSlowdown, DaySpan, attempt_amounts, day_of, start_of};

/// The most days of a report: ten years.
const MOST_DAYS: u64 = 3_660;

/// Whose sums a client may see.
enum Visibility {
    /// Everybody's.
    All,
    /// The user's own, and those of their project as a whole.
    Own { user: String, project: String },
}

impl ClientSession {
    /// The report. A viewer's token is for screens, which an admin sets up.
    pub(super) async fn visible_report(&self, request: UsageReportRequest) -> Result<UsageReport, Refusal> {
        let now = wall_clock();
        let days = check_days(request, now)?;
        let table = self.ask(Query::Shares).await?.table;
        let mut found = self.history(move |history| history.account_days(days.0, days.1)).await?;
        for live in self.ask(Query::LiveAccounts).await? {
            add_live(&mut found, &live, now, days);
        }
        let visibility = match self.by.role {
            Role::Admin | Role::Viewer => Visibility::All,
            Role::User | Role::Worker => Visibility::Own {
                user: self.by.user.clone(),
                project: table.project_of(&self.by.user).unwrap_or(&self.by.user).to_owned(),
            },
        };
        let until = now.min(start_of(days.1 + 1));
        let report = report(&found, request.by, &visibility, &table, [start_of(days.0), until]);
        self.pace_answer(report.rows.len() * size_of::<UsageReportRow>()).await;
        Ok(report)
    }
}

/// The first and the last day of a report.
fn check_days(request: UsageReportRequest, now: Time) -> Result<(u64, u64), Refusal> {
    let (first, last) = (day_of(request.since), day_of(request.until.min(now)));
    let why = if request.since > now {
        "the report begins in the future: give an earlier --since"
    } else if request.since > request.until {
        "the report ends before it begins: give a --since before --until"
    } else if last - first >= MOST_DAYS {
        "the report is of more than ten years: give a later --since"
    } else {
        return Ok((first, last));
    };
    Err(Refusal::new(RefusalCode::Invalid, why.to_owned()))
}

/// Adds what a live attempt has had so far on these days.
fn add_live(found: &mut AccountDays, live: &LiveAccount, now: Time, (first, last): (u64, u64)) {
    let slowdown = match live.account.predicted_slowdown {
        _ if live.account.is_exclusive => AppliedSlowdown::Exclusive,
        Some(predicted) => AppliedSlowdown::Predicted(Slowdown::as_f64(predicted).max(1.0)),
        None => AppliedSlowdown::Unknown,
    };
    let amounts = attempt_amounts(&live.account, now, live.time, slowdown);
    for (day, part) in DaySpan::new(live.account.started_at, now).parts() {
        if (first..=last).contains(&day) {
            let amounts = amounts.times(part);
            let sums = found.sums.entry(live.owner.clone()).or_default();
            sums.amounts = sums.amounts.plus(amounts);
            let of_day = found.days.entry((day, live.owner.clone())).or_default();
            *of_day = of_day.plus(amounts);
        }
    }
}

fn report(
    found: &AccountDays,
    by: UsageGrouping,
    visibility: &Visibility,
    table: &ShareTable,
    [since, until]: [Time; 2],
) -> UsageReport {
    let everything = found.sums.values().fold(0.0, |sum, sums| sum + sums.amounts.held);
    let mut rows: BTreeMap<(Option<&str>, Option<&str>), UsageSums> = BTreeMap::new();
    let (mut total, mut days) = (UsageSums::default(), BTreeMap::<u64, UsageAmounts>::new());
    for (owner, sums) in &found.sums {
        for key in row_keys(owner, by).into_iter().filter(|key| visibility.has_row(*key)) {
            rows.entry(key).or_default().add(sums);
        }
        if visibility.counts(owner, by) {
            total.add(sums);
        }
    }
    for ((day, owner), amounts) in &found.days {
        if visibility.counts(owner, by) {
            let of_day = days.entry(*day).or_default();
            *of_day = of_day.plus(*amounts);
        }
    }
    let entitled = Entitlements::new(found, table);
    let row = |((project, user), sums): ((Option<&str>, Option<&str>), UsageSums)| UsageReportRow {
        project: project.map(str::to_owned),
        user: user.map(str::to_owned),
        used_part: (everything > 0.0).then(|| sums.amounts.held / everything),
        entitled_part: entitled.part(project, user),
        sums,
    };
    let rows = rows.into_iter().map(row).collect();
    let day = |(day, amounts)| UsageDay { start: start_of(day), amounts };
    UsageReport { since, until, rows, total, days: days.into_iter().map(day).collect() }
}

/// The rows in which an account counts: project and user.
fn row_keys(owner: &AccountOwner, by: UsageGrouping) -> Vec<(Option<&str>, Option<&str>)> {
    let (project, user) = (Some(owner.project.as_str()), Some(owner.user.as_str()));
    match by {
        UsageGrouping::User => vec![(None, user)],
        UsageGrouping::Project => vec![(project, None)],
        UsageGrouping::ProjectAndUser => vec![(project, None), (project, user)],
    }
}

impl Visibility {
    fn has_row(&self, (project, user): (Option<&str>, Option<&str>)) -> bool {
        match self {
            Visibility::All => true,
            Visibility::Own { user: own, project: of_own } => match user {
                Some(user) => user == own,
                None => project == Some(of_own),
            },
        }
    }

    /// Whether an account counts in the sums of all rows together.
    fn counts(&self, owner: &AccountOwner, by: UsageGrouping) -> bool {
        match (self, by) {
            (Visibility::All, _) => true,
            (Visibility::Own { user, .. }, UsageGrouping::User) => owner.user == *user,
            (Visibility::Own { project, .. }, UsageGrouping::Project | UsageGrouping::ProjectAndUser) => {
                owner.project == *project
            }
        }
    }
}

/// What those who had jobs in some days are entitled to: projects by their weights, and the users of a
/// project alike.
struct Entitlements<'a> {
    weights: BTreeMap<&'a str, u32>,
    users: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

impl<'a> Entitlements<'a> {
    fn new(found: &'a AccountDays, table: &ShareTable) -> Entitlements<'a> {
        let usual = cohabit_types::ShareProject::default().weight;
        let weight = |project: &str| table.projects.get(project).map_or(usual, |it| it.weight);
        let mut users: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for owner in found.sums.keys() {
            users.entry(&owner.project).or_default().insert(&owner.user);
        }
        let weights = users.keys().map(|project| (*project, weight(project))).collect();
        Entitlements { weights, users }
    }

    fn part(&self, project: Option<&str>, user: Option<&str>) -> f64 {
        let all: u64 = self.weights.values().map(|weight| u64::from(*weight)).sum();
        let of_project = |name: &str| f64::from(self.weights[name]) / (all.max(1) as f64);
        let of_user = |name: &str| of_project(name) / self.users[name].len() as f64;
        match (project, user) {
            (Some(project), None) => of_project(project),
            (Some(project), Some(_)) => of_user(project),
            // A user may have been in several projects.
            (None, user) => {
                let with_user =
                    self.users.iter().filter(|(_, users)| user.is_none_or(|it| users.contains(it)));
                with_user.map(|(project, _)| of_user(project)).sum()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(owners: &[(&str, &str, f64)]) -> AccountDays {
        let mut found = AccountDays::default();
        for (project, user, held) in owners {
            let owner = AccountOwner { project: (*project).to_owned(), user: (*user).to_owned() };
            let amounts = UsageAmounts { held: *held, ..UsageAmounts::default() };
            found.sums.insert(owner.clone(), UsageSums { amounts, ..UsageSums::default() });
            found.days.insert((7, owner), amounts);
        }
        found
    }

    /// The rows with what they held, and what all held.
    fn seen(by: UsageGrouping, visibility: &Visibility) -> (Vec<String>, f64) {
        let found = found(&[
            ("language", "cem", 10.0),
            ("vision", "ada", 30.0),
            ("vision", "ben", 20.0),
            ("dora", "dora", 40.0),
        ]);
        let weight = |weight| cohabit_types::ShareProject { weight, ..Default::default() };
        let projects = [("vision".into(), weight(2_000)), ("language".into(), weight(1_000))].into();
        let table = ShareTable { projects, ..ShareTable::default() };
        let report = report(&found, by, visibility, &table, [Time::EPOCH, Time::EPOCH]);
        let row = |row: &UsageReportRow| {
            let name = [&row.project, &row.user].map(|it| it.clone().unwrap_or_default()).join("/");
            let used = row.used_part.unwrap() * 100.0;
            format!("{name} {} {used:.0}% {:.3}", row.sums.amounts.held, row.entitled_part)
        };
        let days: f64 = report.days.iter().map(|day| day.amounts.held).sum();
        assert!((days - report.total.amounts.held).abs() < 1e-9);
        (report.rows.iter().map(row).collect(), report.total.amounts.held)
    }

    #[test]
    fn an_admin_sees_all_and_parts_follow_from_weights() {
        let (rows, total) = seen(UsageGrouping::ProjectAndUser, &Visibility::All);
        assert_eq!(
            rows,
            [
                "dora/ 40 40% 0.250",
                "dora/dora 40 40% 0.250",
                "language/ 10 10% 0.250",
                "language/cem 10 10% 0.250",
                "vision/ 50 50% 0.500",
                "vision/ada 30 30% 0.250",
                "vision/ben 20 20% 0.250",
            ]
        );
        assert_eq!(total, 100.0);
        assert_eq!(seen(UsageGrouping::User, &Visibility::All).0[0], "/ada 30 30% 0.250");
        assert_eq!(seen(UsageGrouping::Project, &Visibility::All).0.len(), 3);
    }

    #[test]
    fn a_user_sees_themselves_and_their_project_as_a_whole() {
        let own = Visibility::Own { user: "ada".into(), project: "vision".into() };
        assert_eq!(seen(UsageGrouping::User, &own), (vec!["/ada 30 30% 0.250".into()], 30.0));
        assert_eq!(seen(UsageGrouping::Project, &own), (vec!["vision/ 50 50% 0.500".into()], 50.0));
        let both = vec!["vision/ 50 50% 0.500".into(), "vision/ada 30 30% 0.250".into()];
        assert_eq!(seen(UsageGrouping::ProjectAndUser, &own), (both, 50.0));
    }

    #[test]
    fn days_that_make_no_sense_are_refused_with_the_remedy() {
        let day = |day: u64| start_of(day);
        let check = |since, until| {
            let request = UsageReportRequest { since, until, by: UsageGrouping::User };
            check_days(request, day(10_000)).map_err(|refusal| refusal.message)
        };
        assert_eq!(check(day(9_990), day(9_995)), Ok((9_990, 9_995)));
        assert_eq!(check(day(9_990), Time::NEVER), Ok((9_990, 10_000)), "until now");
        for (since, until, remedy) in [
            (day(10_001), day(10_002), "give an earlier --since"),
            (day(9_995), day(9_990), "give a --since before --until"),
            (day(0), day(9_990), "give a later --since"),
        ] {
            let refusal = check(since, until).unwrap_err();
            assert!(refusal.ends_with(remedy), "{refusal}");
        }
    }
}
