//! A predictor that is asked for the same set only once, and for all new sets of a question together.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohabit_types::StretchSharing;

use super::{CoLocation, Colocated, GpuKind, Interference, Member};
use crate::SharingMode;

/// So many sets are remembered; then all are forgotten.
const MOST: usize = 65_536;

/// A member that is quickly compared with others.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) member: Member,
    /// The same for members that are equal, and for no others.
    text: String,
}

/// Jobs that would share a GPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Company {
    pub(crate) gpu: GpuKind,
    pub(crate) sharing: SharingMode,
    pub(crate) members: Vec<Arc<Known>>,
}

/// A predictor with its answers.
#[derive(Debug)]
pub(crate) struct Asked {
    predictor: Arc<dyn Interference>,
    /// By companies whose members are in order.
    answers: BTreeMap<Company, Vec<Colocated>>,
}

impl Asked {
    pub(crate) const fn new(predictor: Arc<dyn Interference>) -> Asked {
        Asked { predictor, answers: BTreeMap::new() }
    }

    /// What becomes of the members of each company, in their order.
    pub(crate) fn predict(&mut self, companies: &[Company]) -> Vec<Vec<Colocated>> {
        let ordered: Vec<Company> = companies.iter().map(Company::in_order).collect();
        self.ask_for(&ordered);
        let told = |(company, ordered): (&Company, &Company)| match self.answers.get(ordered) {
            Some(answers) => company.out_of_order(answers),
            None => company.members.iter().map(|known| Colocated::alone(&known.member)).collect(),
        };
        companies.iter().zip(&ordered).map(told).collect()
    }

    /// The same, but of companies that were not asked for before only so many, the first ones.
    pub(crate) fn predict_some(&mut self, companies: &[Company], most: usize) -> Vec<Option<Vec<Colocated>>> {
        let ordered: Vec<Company> = companies.iter().map(Company::in_order).collect();
        let mut new = BTreeSet::new();
        let mut is_told = |company: &&Company| {
            let known = company.members.len() < 2 || self.answers.contains_key(company);
            known || new.contains(*company) || (new.len() < most && new.insert((*company).clone()))
        };
        let told: Vec<bool> = ordered.iter().map(|company| is_told(&company)).collect();
        let asked: Vec<Company> =
            companies.iter().zip(&told).filter(|(_, told)| **told).map(|(it, _)| it.clone()).collect();
        let mut answers = self.predict(&asked).into_iter();
        told.into_iter().map(|told| if told { answers.next() } else { None }).collect()
    }

    fn ask_for(&mut self, companies: &[Company]) {
        if self.answers.len() >= MOST {
            self.answers.clear();
        }
        // Nobody need be asked what becomes of one who is alone.
        let is_new = |company: &&Company| company.members.len() > 1 && !self.answers.contains_key(company);
        let mut new: Vec<&Company> = companies.iter().filter(is_new).collect();
        new.sort();
        new.dedup();
        if !new.is_empty() {
            let sets: Vec<CoLocation> = new.iter().map(|company| company.set()).collect();
            self.answers.extend(new.into_iter().cloned().zip(self.predictor.predict(&sets)));
        }
    }
}

impl Company {
    fn set(&self) -> CoLocation {
        let sharing = match self.sharing {
            SharingMode::Enforced => Some(StretchSharing::Mps),
            SharingMode::Unenforced => Some(StretchSharing::TimeSliced),
            SharingMode::Alone => Some(StretchSharing::Exclusive),
        };
        let members = self.members.iter().map(|known| known.member.clone()).collect();
        CoLocation { gpu: self.gpu.clone(), sharing, members }
    }

    fn in_order(&self) -> Company {
        let members = self.order().into_iter().map(|place| self.members[place].clone()).collect();
        Company { members, ..self.clone() }
    }

    /// The answers for the ordered company, in the order of this one.
    fn out_of_order(&self, answers: &[Colocated]) -> Vec<Colocated> {
        let mut told: Vec<(usize, Colocated)> =
            self.order().into_iter().zip(answers.iter().copied()).collect();
        told.sort_by_key(|(place, _)| *place);
        told.into_iter().map(|(_, answer)| answer).collect()
    }

    /// The places of the members in their order.
    fn order(&self) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.members.len()).collect();
        places.sort_by_key(|place| &self.members[*place]);
        places
    }
}

impl Known {
    pub(crate) fn new(member: Member) -> Known {
        let text = format!("{member:?}");
        Known { member, text }
    }
}

impl PartialEq for Known {
    fn eq(&self, other: &Known) -> bool {
        self.text == other.text
    }
}

impl Eq for Known {}

impl PartialOrd for Known {
    fn partial_cmp(&self, other: &Known) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Known {
    fn cmp(&self, other: &Known) -> Ordering {
        // Who keeps one copy of each is spared the texts.
        if std::ptr::eq(self, other) { Ordering::Equal } else { self.text.cmp(&other.text) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::interference::{ByLaw, FairShares, Solo};

    /// The law, and the number of sets of each question it was asked.
    #[derive(Debug, Default)]
    struct Counting(Mutex<Vec<usize>>);

    impl Interference for Counting {
        fn predict(&self, sets: &[CoLocation]) -> Vec<Vec<Colocated>> {
            self.0.lock().unwrap().push(sets.len());
            ByLaw::<FairShares>::default().predict(sets)
        }
    }

    fn company(busy: &[f64]) -> Company {
        let member = |busy: &f64| Member {
            solo: Solo { utilisation: Some(*busy), ..Solo::default() },
            ..Member::default()
        };
        let members = busy.iter().map(|busy| Arc::new(Known::new(member(busy)))).collect();
        Company { gpu: GpuKind::named("v100"), sharing: SharingMode::Enforced, members }
    }

    #[test]
    fn a_set_is_asked_for_once_in_whatever_order_and_new_ones_together() {
        let counting = Arc::new(Counting::default());
        let mut asked = Asked::new(counting.clone());
        let slowdowns = |answers: &[Colocated]| answers.iter().map(|it| it.slowdown).collect::<Vec<_>>();
        let first = asked.predict(&[company(&[0.3, 0.94]), company(&[0.94, 0.3]), company(&[0.5, 0.5])]);
        assert_eq!(slowdowns(&first[0]).into_iter().rev().collect::<Vec<_>>(), slowdowns(&first[1]));
        assert!(first[0][0].slowdown < first[0][1].slowdown, "the light one suffers less");
        assert_eq!(asked.predict(&[company(&[0.94, 0.3])])[0], first[1]);
        assert_eq!(*counting.0.lock().unwrap(), [2]);
    }
}
