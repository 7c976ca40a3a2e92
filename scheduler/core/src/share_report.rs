//! Who holds how much of the cluster, and whose turn is next: for people.

use std::sync::Arc;

use cohabit_fair_share::{Division, FairShares, GPU, Line, Party, Standing, Turns};
use cohabit_policy::DeviceView;
use cohabit_types::{
    GIVEN_BACK_WITHIN, HeldFor, JobId, PartyShare, ProjectShare, ShareReport, ShareTable, Time, UserShare,
};

use crate::head::Head;
use crate::reader::HeadReader;
use crate::share_table::{counted_gpus, gpus};
use crate::submission::SubmissionState;

impl Head {
    /// What is divided, in thousandths of a GPU: the devices in service on nodes that take jobs.
    pub(crate) fn shared_capacity(&self) -> u64 {
        let nodes = self.nodes.iter().filter(|(_, node)| node.takes_jobs());
        let devices = nodes.flat_map(|(id, node)| self.node_view(*id, node).devices);
        let in_service = devices.filter(DeviceView::is_in_service);
        in_service.map(|it| u64::from(self.shares.table().price(&it.model)) * GPU / 1_000).sum()
    }

    /// Everybody who holds, wants or lately used something.
    fn fair_shares(&self) -> FairShares {
        let mut shares = FairShares::new(Arc::clone(self.shares.table()));
        for (user, used) in self.shares.used() {
            shares.set_usage(user, *used);
        }
        for user in self.volatile.waiting_demand.users() {
            shares.user(user);
        }
        shares
    }

    /// The table of shares.
    #[must_use]
    pub fn share_table(&self) -> &ShareTable {
        self.shares.table()
    }

    /// What everybody holds, used and is entitled to.
    pub fn share_report(&self, now: Time) -> ShareReport {
        let shares = self.fair_shares();
        let capacity = self.shared_capacity();
        let waiting = |party: Party| self.volatile.waiting_demand.of(shares.name(party));
        let division = shares.divide(now, capacity, waiting);
        let lines = shares.parties().map(|party| Line { party, ..Line::default() });
        let mut turns = Turns::new(&shares, &division, lines);
        let mut projects: Vec<(usize, ProjectShare)> = Vec::new();
        while let Some(line) = turns.next() {
            turns.close(line);
            let party = line.party;
            let number = shares.project(party);
            let position = projects.iter().position(|(known, _)| *known == number).unwrap_or_else(|| {
                projects.push((number, project_share(&shares, &division, number)));
                projects.len() - 1
            });
            let standing = division.users[party.0 as usize];
            if standing.wants > 0 {
                let all_used = used_by(&shares, &division, |other| shares.project(other) == number);
                let share = party_share(standing, all_used);
                projects[position].1.users.push(UserShare { user: shares.name(party).to_owned(), share });
            }
        }
        let named = (0..division.projects.len()).filter(|it| shares.is_named(*it));
        for number in named {
            if !projects.iter().any(|(known, _)| *known == number) {
                projects.push((number, project_share(&shares, &division, number)));
            }
        }
        projects.retain(|(number, it)| shares.is_named(*number) || !it.users.is_empty());
        ShareReport {
            is_on: self.config.fair_share,
            table: self.shares.table().as_ref().clone(),
            capacity,
            projects: projects.into_iter().map(|(_, project)| project).collect(),
        }
    }
}

fn project_share(shares: &FairShares, division: &Division, number: usize) -> ProjectShare {
    let all_used = division.projects.iter().filter(|it| it.wants > 0).map(|it| it.used).sum();
    let name = shares.project_name(number).to_owned();
    ProjectShare {
        guaranteed: shares
            .table()
            .projects
            .get(&name)
            .filter(|_| shares.is_named(number))
            .map_or(0, |it| it.guaranteed),
        name,
        share: party_share(division.projects[number], all_used),
        users: Vec::new(),
    }
}

/// What these users used who hold or want something.
fn used_by(shares: &FairShares, division: &Division, is_meant: impl Fn(Party) -> bool) -> u128 {
    let active = shares.parties().filter(|it| division.users[it.0 as usize].wants > 0 && is_meant(*it));
    active.map(|it| division.users[it.0 as usize].used).sum()
}

fn party_share(standing: Standing, all_used: u128) -> PartyShare {
    let Standing { held, entitled, wants, weight, factor, used, .. } = standing;
    let seconds = |used: u128| u64::try_from(used / 1_000_000).unwrap_or(u64::MAX);
    let used_part = (used * 1_000).checked_div(all_used).unwrap_or(0) as u64;
    PartyShare { held, waiting: wants - held, entitled, weight, factor, used: seconds(used), used_part }
}

impl HeadReader<'_> {
    /// For a queued job where users take turns and several want something: what its user holds of what they
    /// are entitled to, and whose turn is next.
    pub(crate) fn share_sentence(&self, id: JobId, submission: &SubmissionState) -> Option<String> {
        if !self.head.config.fair_share || !self.head.eligible.contains(&id) {
            return None;
        }
        let report = self.head.share_report(self.now);
        let is_own = |project: &&ProjectShare| project.users.iter().any(|it| it.user == submission.user);
        let own = report.projects.iter().find(is_own)?;
        let active: Vec<&ProjectShare> = report.projects.iter().filter(|it| !it.users.is_empty()).collect();
        let weights = active.iter().map(|it| it.share.weight).sum();
        let named = |project: &ProjectShare| match report.table.projects.contains_key(&project.name) {
            true => format!("Project {}", project.name),
            false => format!("User {}", project.name),
        };
        let mut text = match active[..] {
            [_] => String::new(),
            _ => stated(&named(own), &own.share, weights),
        };
        if own.users.len() > 1 {
            let user = own.users.iter().find(|it| it.user == submission.user)?;
            let in_project = if text.is_empty() { "User" } else { " In it, user" };
            text += &stated(
                &format!("{in_project} {}", user.user),
                &user.share,
                own.users.iter().map(|it| it.share.weight).sum(),
            );
        }
        if let Some(kept) = self.kept_for_others(submission) {
            text += &format!(" {kept}.");
        }
        let next = active.first().filter(|next| next.name != own.name && next.share.waiting > 0);
        if let Some(next) = next {
            let (name, held, entitled) = (named(next), gpus(next.share.held), gpus(next.share.entitled));
            text += &format!(" {name} comes first: {held} of {entitled} held.");
        }
        Some(text.trim_start().to_owned()).filter(|text| !text.is_empty())
    }
}

impl HeadReader<'_> {
    /// What is lent only to jobs that can be given back, for a job that cannot.
    pub(crate) fn kept_for_others(&self, submission: &SubmissionState) -> Option<String> {
        if !self.head.config.fair_share || self.head.held_for(&submission.spec) != HeldFor::Unlimited {
            return None;
        }
        let table = self.head.shares.table();
        let own = self.head.shares.project_of(&submission.user).map_or(0, |(_, project)| project.guaranteed);
        let guaranteed: u64 = table.projects.values().map(|project| project.guaranteed).sum();
        let open = u128::from(self.head.shared_capacity()) * u128::from(table.open_part) / 1_000;
        let kept = guaranteed.saturating_sub(own) + open as u64;
        Some(format!(
            "{} GPUs are kept for jobs that can be given back: --preemptible or --time {}h",
            gpus(kept),
            GIVEN_BACK_WITHIN.as_micros() / 3_600_000_000
        ))
    }
}

fn stated(name: &str, share: &PartyShare, weights: u64) -> String {
    let PartyShare { held, entitled, weight, factor, used_part, .. } = *share;
    let (held, entitled) = (counted_gpus(held), counted_gpus(entitled));
    let (weight, weights) = (gpus(weight), gpus(weights));
    format!(
        "{name} holds {held}, and the part due to them now is {entitled}: weight {weight} of {weights}, which counts \
         ×{:.2}, because they used {:.0}% of what was used lately.",
        factor as f64 / 1_000.0,
        used_part as f64 / 10.0
    )
}
