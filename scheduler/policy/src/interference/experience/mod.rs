//! What a cluster lives through: how fast configurations ran alone and in which company, gathered from
//! stretches.
//!
//! Recent stretches count more than old ones, so that a program that was changed under its old name is
//! noticed; and companies that were not seen for the longest time are forgotten, so that it stays small.
//! Jobs are known by their configurations: one that has no name teaches nothing.

mod tally;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use cohabit_types::{Span, StretchSharing, Time};

use self::tally::Tally;
use super::measured::{Key, ordered};
use super::{CoLocation, Configuration, GpuKind, MeasuredSet, Member, Observed, Outcome, Solo, SoloBook};

/// One stretch of a rank, with what is known of everybody on the device.
#[derive(Debug, Clone, PartialEq)]
pub struct Lived {
    /// On which make of GPU.
    pub gpu: GpuKind,
    /// How it was shared.
    pub sharing: StretchSharing,
    /// The job whose stretch it is.
    pub member: Member,
    /// Everybody else on the device; nobody, if it was alone.
    pub neighbours: Vec<Member>,
    /// When the stretch ended.
    pub until: Time,
    /// How long it was.
    pub length: Span,
    /// Steps in it.
    pub steps: u64,
    /// Steps a second.
    pub rate: f64,
    /// The most memory that the rank held on the device, in bytes.
    pub memory: Option<f64>,
    /// The mean of the device's utilisation, 0 to 1: the rank's own only where it was alone.
    pub utilisation: Option<f64>,
}

/// What stretches told, gathered by configuration.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Experience {
    companies: BTreeMap<Key, Company>,
}

/// A company of two or more with what each member did in it, beside what it did alone.
#[derive(Debug, Clone, PartialEq)]
pub struct LivedSet {
    /// The members, with what they did alone, and what became of them.
    pub measured: MeasuredSet,
    /// Standard deviation of the logarithm of each member's slowdown, in the members' order.
    pub uncertainty: Vec<f64>,
    /// When it was last seen.
    pub last: Time,
}

/// Configurations on one GPU, of which some may have told nothing yet; or one that is alone.
#[derive(Debug, Clone, PartialEq)]
struct Company {
    set: CoLocation,
    /// Members of one configuration are the same.
    tallies: BTreeMap<Configuration, Tally>,
    last: Time,
}

/// A stretch of fewer steps is noise,
const LEAST_STEPS: u64 = 5;
/// and so is a shorter one.
const LEAST_LENGTH: Span = Span::from_secs(2);

/// So many companies are remembered, those of one member included.
const MOST_COMPANIES: usize = 8_192;

/// Where the figures alone come from if the company's own way of sharing has none.
const NEXT_BEST: [StretchSharing; 3] =
    [StretchSharing::Exclusive, StretchSharing::Mps, StretchSharing::TimeSliced];

impl Experience {
    /// Gathers one stretch, unless it is too short to tell anything, or somebody on the device is nobody
    /// known.
    pub fn note(&mut self, lived: &Lived) {
        if lived.tells_something() {
            let set = lived.company();
            let company = match self.companies.entry(Key::of(&set)) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(Company::new(set)),
            };
            company.note(lived);
            self.forget_the_oldest();
        }
    }

    /// Figures of configurations alone: those that were lived through, and beside them what was measured
    /// elsewhere.
    #[must_use]
    pub fn solos(&self, beside: &SoloBook) -> SoloBook {
        let mut book = beside.clone();
        for key in self.companies.keys().filter(|key| key.configurations.len() == 1) {
            let configuration = &key.configurations[0];
            if let Some(alone) = self.alone(&key.gpu, None, configuration) {
                let elsewhere = beside.find(&key.gpu, configuration).map(|(_, solo)| solo);
                let solo = alone.solo(elsewhere.unwrap_or(&Solo::default()));
                book.insert(key.gpu.clone(), configuration.clone(), solo);
            }
        }
        book
    }

    /// Every company of two or more all of whose members' rates together and alone are known, oldest first.
    /// What a member does alone is taken from another way of sharing the same make of GPU, if need be.
    #[must_use]
    pub fn sets(&self) -> Vec<LivedSet> {
        let mut sets: Vec<LivedSet> = self.companies.values().filter_map(|it| self.lived(it)).collect();
        sets.sort_by_key(|it| it.last);
        sets
    }

    fn lived(&self, company: &Company) -> Option<LivedSet> {
        if company.set.members.len() < 2 {
            return None;
        }
        let mut lived = LivedSet {
            measured: MeasuredSet {
                set: CoLocation { members: Vec::new(), ..company.set.clone() },
                outcome: Outcome::Ran(Vec::new()),
            },
            uncertainty: Vec::new(),
            last: company.last,
        };
        let mut observed = Vec::new();
        for member in &company.set.members {
            let configuration = member.configuration();
            let together = company.tallies.get(&configuration)?;
            let alone = self.alone(&company.set.gpu, company.set.sharing, &configuration)?;
            let (slowdown, uncertainty) = together.beside(alone);
            observed.push(Observed { slowdown, memory: together.memory(), utilisation: None });
            lived.uncertainty.push(uncertainty);
            let member = Member { solo: alone.solo(&member.solo), ..member.clone() };
            lived.measured.set.members.push(member);
        }
        lived.measured.outcome = Outcome::Ran(observed);
        Some(lived)
    }

    /// What a configuration did alone on the GPU, in this way of sharing or else in another.
    fn alone(
        &self,
        gpu: &GpuKind,
        sharing: Option<StretchSharing>,
        configuration: &Configuration,
    ) -> Option<&Tally> {
        sharing.into_iter().chain(NEXT_BEST).find_map(|sharing| {
            let configurations = vec![configuration.clone()];
            let key = Key { gpu: gpu.clone(), sharing: sharing.word(), configurations };
            self.companies.get(&key)?.tallies.get(configuration)
        })
    }

    /// Companies leave before what their members did alone, without which companies tell nothing.
    fn forget_the_oldest(&mut self) {
        if self.companies.len() > MOST_COMPANIES {
            let age = |(_, company): &(&Key, &Company)| (company.set.members.len() == 1, company.last);
            let oldest = self.companies.iter().min_by_key(age).map(|(key, _)| key.clone());
            oldest.map(|key| self.companies.remove(&key));
        }
    }
}

impl Lived {
    fn tells_something(&self) -> bool {
        let mut everybody = self.neighbours.iter().chain([&self.member]);
        self.steps >= LEAST_STEPS
            && self.length >= LEAST_LENGTH
            && self.rate.is_finite()
            && self.rate > 0.0
            && everybody.all(|member| !member.model.is_empty())
    }

    /// Everybody on the device, in the order of their configurations.
    fn company(&self) -> CoLocation {
        let everybody: Vec<Member> = [&self.member].into_iter().chain(&self.neighbours).cloned().collect();
        let members = ordered(&everybody).into_iter().map(|at| everybody[at].clone()).collect();
        CoLocation { gpu: self.gpu.clone(), sharing: Some(self.sharing), members }
    }
}

impl Company {
    const fn new(set: CoLocation) -> Company {
        Company { set, tallies: BTreeMap::new(), last: Time::EPOCH }
    }

    fn note(&mut self, lived: &Lived) {
        self.last = self.last.max(lived.until);
        self.tallies.entry(lived.member.configuration()).or_default().note(lived);
    }
}

#[cfg(test)]
mod tests;
