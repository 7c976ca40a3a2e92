//! A predictor that is asked about each set only once, and about all new sets of a question together.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohabit_types::SharingStrategy;

use super::{
    ColocationEstimate, ColocationSet, GpuKind, Interference, ModelFeatures, SetMember, SoloMetrics,
};
use crate::SharingMode;
use crate::total_order::{compare_columns, compare_numbers};

/// Sets, and members, that are remembered; then all are forgotten.
const MAX_CACHED_SETS: usize = 65_536;

/// A member that is shared by all sets that contain it, compared by value and, where possible, by address.
#[derive(Debug)]
pub(crate) struct InternedMember {
    pub(crate) member: SetMember,
    /// The first eight bytes of the model's name, which tell most members apart without following a pointer.
    prefix: u64,
}

/// Jobs that would share a GPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct InternedSet {
    pub(crate) gpu: GpuKind,
    pub(crate) sharing: SharingMode,
    pub(crate) members: Vec<Arc<InternedMember>>,
}

/// A predictor with its answers.
#[derive(Debug)]
pub(crate) struct PredictionCache {
    predictor: Arc<dyn Interference>,
    numbers: MemberNumbers,
    /// By the numbers of the members, in ascending order, behind that of the GPU. The estimates are in that
    /// order too.
    answers: BTreeMap<Vec<u32>, Vec<ColocationEstimate>>,
}

/// Numbers of members and GPUs, which are compared faster than what they stand for.
#[derive(Debug, Default)]
struct MemberNumbers {
    members: BTreeMap<Arc<InternedMember>, u32>,
    /// The numbers by address, for members that are kept alive and so keep their address.
    by_address: BTreeMap<usize, (Arc<InternedMember>, u32)>,
    gpus: BTreeMap<(GpuKind, SharingMode), u32>,
}

impl MemberNumbers {
    /// The number of a member; equal members have one.
    fn of(&mut self, member: &Arc<InternedMember>) -> u32 {
        let address = Arc::as_ptr(member).addr();
        if let Some((_, number)) = self.by_address.get(&address) {
            return *number;
        }
        let next = self.members.len() as u32;
        let number = *self.members.entry(Arc::clone(member)).or_insert(next);
        self.by_address.insert(address, (Arc::clone(member), number));
        number
    }

    fn of_gpu(&mut self, set: &InternedSet) -> u32 {
        let next = self.gpus.len() as u32;
        *self.gpus.entry((set.gpu.clone(), set.sharing)).or_insert(next)
    }
}

/// What a set is known by, and the place of each of its members in the answer.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NumberedSet {
    numbers: Vec<u32>,
    places: Vec<usize>,
}

impl PredictionCache {
    pub(crate) fn new(predictor: Arc<dyn Interference>) -> PredictionCache {
        PredictionCache { predictor, numbers: MemberNumbers::default(), answers: BTreeMap::new() }
    }

    /// The estimates of the members of each set, in their order.
    pub(crate) fn predict(&mut self, sets: &[InternedSet]) -> Vec<Vec<ColocationEstimate>> {
        let alone = |set: &InternedSet| {
            set.members.iter().map(|known| ColocationEstimate::alone(&known.member)).collect()
        };
        let answers = self.predict_some(sets, usize::MAX).into_iter();
        answers.zip(sets).map(|(answer, set)| answer.unwrap_or_else(|| alone(set))).collect()
    }

    /// The same, but of sets that are new only the first `most`; `None` for the others.
    pub(crate) fn predict_some(
        &mut self,
        sets: &[InternedSet],
        most: usize,
    ) -> Vec<Option<Vec<ColocationEstimate>>> {
        if self.answers.len().max(self.numbers.by_address.len()) >= MAX_CACHED_SETS {
            self.answers.clear();
            self.numbers = MemberNumbers::default();
        }
        let numbered: Vec<NumberedSet> = sets.iter().map(|set| self.number(set)).collect();
        let mut answers: Vec<Option<Vec<ColocationEstimate>>> =
            sets.iter().zip(&numbered).map(|(set, numbered)| self.known(set, numbered)).collect();
        let mut met = BTreeSet::new();
        let mut new: Vec<(&InternedSet, &NumberedSet)> = Vec::new();
        for ((set, numbered), answer) in sets.iter().zip(&numbered).zip(&answers) {
            if answer.is_none() && met.len() < most && met.insert(&numbered.numbers) {
                new.push((set, numbered));
            }
        }
        if new.is_empty() {
            return answers;
        }
        let orders: Vec<Vec<usize>> = new.iter().map(|(set, _)| set.member_order()).collect();
        let asked: Vec<ColocationSet> =
            new.iter().zip(&orders).map(|((set, _), order)| set.to_set(order)).collect();
        for (((_, numbered), order), answer) in new.iter().zip(&orders).zip(self.predictor.predict(&asked)) {
            let mut of_number: Vec<(usize, ColocationEstimate)> =
                order.iter().map(|member| numbered.places[*member]).zip(answer).collect();
            of_number.sort_by_key(|(place, _)| *place);
            let plausible = of_number.into_iter().map(|(_, estimate)| estimate.plausible()).collect();
            self.answers.insert(numbered.numbers.clone(), plausible);
        }
        for ((answer, set), numbered) in answers.iter_mut().zip(sets).zip(&numbered) {
            if answer.is_none() {
                *answer = self.known(set, numbered);
            }
        }
        answers
    }

    fn number(&mut self, set: &InternedSet) -> NumberedSet {
        let mut numbers = Vec::with_capacity(set.members.len() + 1);
        numbers.push(self.numbers.of_gpu(set));
        numbers.extend(set.members.iter().map(|member| self.numbers.of(member)));
        // Equal members keep their order.
        let place = |member: usize| {
            let own = numbers[member + 1];
            let before = numbers[1..=member].iter().filter(|other| **other <= own).count();
            before + numbers[member + 2..].iter().filter(|other| **other < own).count()
        };
        let places = (0..set.members.len()).map(place).collect();
        numbers[1..].sort_unstable();
        NumberedSet { numbers, places }
    }

    /// The answer for a set that was asked about before, or needs no prediction.
    fn known(&self, set: &InternedSet, numbered: &NumberedSet) -> Option<Vec<ColocationEstimate>> {
        if set.members.len() < 2 {
            return Some(set.members.iter().map(|only| ColocationEstimate::alone(&only.member)).collect());
        }
        let answer = self.answers.get(&numbered.numbers)?;
        Some(numbered.places.iter().map(|place| answer[*place]).collect())
    }
}

impl InternedSet {
    /// The set as a predictor sees it, with its members in this order.
    fn to_set(&self, order: &[usize]) -> ColocationSet {
        let sharing = match self.sharing {
            SharingMode::Enforced => Some(SharingStrategy::Mps),
            SharingMode::Unenforced => Some(SharingStrategy::TimeSliced),
            SharingMode::Exclusive => Some(SharingStrategy::Exclusive),
        };
        let members = order.iter().map(|place| self.members[*place].member.clone()).collect();
        ColocationSet { gpu: self.gpu.clone(), sharing, members }
    }

    /// The indices of the members in sorted order.
    fn member_order(&self) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.members.len()).collect();
        places.sort_by_key(|place| &self.members[*place]);
        places
    }
}

impl InternedMember {
    pub(crate) fn new(member: SetMember) -> InternedMember {
        let prefix = name_prefix(&member.model);
        InternedMember { member, prefix }
    }
}

impl PartialEq for InternedMember {
    fn eq(&self, other: &InternedMember) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for InternedMember {}

impl PartialOrd for InternedMember {
    fn partial_cmp(&self, other: &InternedMember) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for InternedMember {
    fn cmp(&self, other: &InternedMember) -> Ordering {
        // Members are interned, so most equal ones are one and the same.
        if std::ptr::eq(self, other) {
            return Ordering::Equal;
        }
        match self.prefix.cmp(&other.prefix) {
            Ordering::Equal => compare_members(&self.member, &other.member),
            decided @ (Ordering::Less | Ordering::Greater) => decided,
        }
    }
}

/// The first eight bytes of a name as a number, with zeros behind a shorter one: names and numbers are in
/// the same order as far as the numbers differ.
fn name_prefix(name: &str) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
    u64::from_be_bytes(bytes)
}

/// Compares two members by everything that a predictor sees. Every field is named, so that none can be
/// forgotten.
fn compare_members(one: &SetMember, other: &SetMember) -> Ordering {
    let SetMember { model, family, batch, precision, features, solo, claim } = one;
    model
        .cmp(&other.model)
        .then_with(|| family.cmp(&other.family))
        .then_with(|| batch.cmp(&other.batch))
        .then_with(|| precision.cmp(&other.precision))
        .then_with(|| compare_features(features, &other.features))
        .then_with(|| compare_solos(solo, &other.solo))
        .then_with(|| compare_numbers(*claim, other.claim))
}

fn compare_features(one: &ModelFeatures, other: &ModelFeatures) -> Ordering {
    let ModelFeatures { parameters, flops_per_sample, activation_bytes, input_bytes, operators } = one;
    compare_numbers(*parameters, other.parameters)
        .then_with(|| compare_numbers(*flops_per_sample, other.flops_per_sample))
        .then_with(|| compare_numbers(*activation_bytes, other.activation_bytes))
        .then_with(|| compare_numbers(*input_bytes, other.input_bytes))
        .then_with(|| compare_columns(operators, &other.operators))
}

fn compare_solos(one: &SoloMetrics, other: &SoloMetrics) -> Ordering {
    let SoloMetrics { rate, memory, utilization, others } = one;
    compare_numbers(*rate, other.rate)
        .then_with(|| compare_numbers(*memory, other.memory))
        .then_with(|| compare_numbers(*utilization, other.utilization))
        .then_with(|| compare_columns(others, &other.others))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::interference::{AnalyticInterference, MaxMinSharing, SoloMetrics};

    /// The analytic model, and the number of sets in each question.
    #[derive(Debug, Default)]
    struct Counting(Mutex<Vec<usize>>);

    impl Interference for Counting {
        fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
            self.0.lock().unwrap().push(sets.len());
            AnalyticInterference::<MaxMinSharing>::default().predict(sets)
        }
    }

    fn members_of(busy: &[f64]) -> InternedSet {
        let member = |busy: &f64| SetMember {
            solo: SoloMetrics { utilization: Some(*busy), ..SoloMetrics::default() },
            ..SetMember::default()
        };
        let members = busy.iter().map(|busy| Arc::new(InternedMember::new(member(busy)))).collect();
        InternedSet { gpu: GpuKind::named("v100"), sharing: SharingMode::Enforced, members }
    }

    #[test]
    fn members_are_compared_by_every_field_and_not_by_their_text() {
        let known = || SetMember { model: "a".into(), batch: Some(1), ..SetMember::default() };
        let solo = |solo| SetMember { solo, ..known() };
        let features = |features| SetMember { features, ..known() };
        let others = [
            SetMember { model: "b".into(), ..known() },
            SetMember { batch: Some(2), ..known() },
            SetMember { precision: "bf16".into(), ..known() },
            SetMember { claim: Some(0.5), ..known() },
            solo(SoloMetrics { rate: Some(1.0), ..SoloMetrics::default() }),
            solo(SoloMetrics { memory: Some(1.0), ..SoloMetrics::default() }),
            solo(SoloMetrics { utilization: Some(1.0), ..SoloMetrics::default() }),
            solo(SoloMetrics { others: [("sm".to_owned(), 1.0)].into(), ..SoloMetrics::default() }),
            features(ModelFeatures { parameters: Some(1.0), ..ModelFeatures::default() }),
            features(ModelFeatures { flops_per_sample: Some(1.0), ..ModelFeatures::default() }),
            features(ModelFeatures { activation_bytes: Some(1.0), ..ModelFeatures::default() }),
            features(ModelFeatures { input_bytes: Some(1.0), ..ModelFeatures::default() }),
            features(ModelFeatures {
                operators: [("Conv".to_owned(), 1.0)].into(),
                ..ModelFeatures::default()
            }),
        ];
        let one = InternedMember::new(known());
        assert_eq!(one, InternedMember::new(known()));
        for other in others.map(InternedMember::new) {
            assert_ne!(one, other);
            assert_eq!(one.cmp(&other), other.cmp(&one).reverse());
        }
    }

    #[test]
    fn members_are_ordered_by_name_whatever_their_prefixes_are() {
        let names = ["", "a", "ab", "abcdefgh", "abcdefgha", "abcdefghb", "b", "\u{e9}"];
        let member =
            |name: &str| InternedMember::new(SetMember { model: name.into(), ..SetMember::default() });
        for (one, other) in names.iter().flat_map(|one| names.iter().map(move |other| (one, other))) {
            assert_eq!(member(one).cmp(&member(other)), one.cmp(other), "{one} and {other}");
        }
    }

    #[test]
    fn a_set_is_queried_once_in_any_order_and_new_ones_together() {
        let counting = Arc::new(Counting::default());
        let mut asked = PredictionCache::new(counting.clone());
        let slowdowns =
            |answers: &[ColocationEstimate]| answers.iter().map(|it| it.slowdown).collect::<Vec<_>>();
        let first =
            asked.predict(&[members_of(&[0.3, 0.94]), members_of(&[0.94, 0.3]), members_of(&[0.5, 0.5])]);
        assert_eq!(slowdowns(&first[0]).into_iter().rev().collect::<Vec<_>>(), slowdowns(&first[1]));
        assert!(first[0][0].slowdown < first[0][1].slowdown, "the light one suffers less");
        assert_eq!(asked.predict(&[members_of(&[0.94, 0.3])])[0], first[1]);
        assert_eq!(*counting.0.lock().unwrap(), [2]);
    }
}
