//! The observations of a process with their weights, arranged by what they have in common.
//!
//! The covariance of a question with an observation is a sum of products: of the context with the own job,
//! with the partners, and with both. So what the observations of one context and one own job say of a
//! partner is summed up apart, and is the same for all questions with that partner.

use std::collections::BTreeMap;
use std::ops::Range;

use super::prior::Prior;
use super::process::SetMemberRow;

/// The observations.
#[derive(Debug, Default, Clone)]
pub(super) struct RowTable {
    contexts: Vec<ContextRows>,
    /// Rows with one context and one own job.
    owns: Vec<OwnRows>,
    /// Rows with one context and one list of partners.
    partners: Vec<PartnerRows>,
    /// The lists of partners, one behind the other, and where each ends.
    list_jobs: Vec<usize>,
    list_ends: Vec<usize>,
    /// The weight and the list of partners of each row, in the order of `owns`.
    factors: Vec<f64>,
    list_of: Vec<usize>,
}

/// The rows of one context.
#[derive(Debug, Clone)]
struct ContextRows {
    context: usize,
    /// The sum of the weights.
    factor: f64,
    owns: Range<usize>,
    partners: Range<usize>,
}

#[derive(Debug, Clone)]
struct OwnRows {
    own: usize,
    /// The sum of the weights.
    factor: f64,
    rows: Range<usize>,
}

#[derive(Debug, Clone)]
struct PartnerRows {
    list: usize,
    /// The sum of the weights.
    factor: f64,
}

/// What the observations say of a job by itself.
#[derive(Debug)]
pub(super) struct OwnSums {
    /// For each context.
    sensitivity: Vec<Sum>,
    /// The similarity to the own job of each element of `owns`.
    like: Vec<f64>,
}

/// What they say of certain partners.
#[derive(Debug)]
pub(super) struct PartnerSums {
    /// For each context.
    pressure: Vec<Sum>,
    /// For each element of `owns`.
    interaction: Vec<Sum>,
}

/// A sum of similarities, each with the weight of its observations, and the largest similarity.
#[derive(Debug, Default, Clone, Copy)]
struct Sum {
    weighed: f64,
    most: f64,
}

impl Sum {
    /// The sum over pairs of a weight and a similarity.
    fn of(pairs: impl Iterator<Item = (f64, f64)>) -> Sum {
        pairs.fold(Sum::default(), |Sum { weighed, most }, (factor, like)| Sum {
            weighed: weighed + factor * like,
            most: most.max(like),
        })
    }
}

/// The comparison of a question with all observations.
#[derive(Debug)]
pub(super) struct Comparison {
    /// The weighed sum of all covariances.
    sum: f64,
    closest: Closest,
}

/// How similar the closest observation is in each way.
#[derive(Debug)]
pub(super) struct Closest {
    pub(super) own: f64,
    pub(super) partner: f64,
    pub(super) both: f64,
}

impl Comparison {
    /// The prediction by this mean of all observations.
    pub(super) fn add_to(self, mean: f64) -> (f64, Closest) {
        (mean + self.sum, self.closest)
    }
}

impl RowTable {
    /// Arranges rows with these weights.
    pub(super) fn new(rows: &[SetMemberRow], factors: &[f64]) -> RowTable {
        let mut table = RowTable::default();
        let mut numbers: BTreeMap<&[usize], usize> = BTreeMap::new();
        let mut by_context: BTreeMap<usize, BTreeMap<usize, Vec<(usize, f64)>>> = BTreeMap::new();
        for (row, factor) in rows.iter().zip(factors) {
            let list = *numbers.entry(&row.partners).or_insert_with(|| {
                table.list_jobs.extend_from_slice(&row.partners);
                table.list_ends.push(table.list_jobs.len());
                table.list_ends.len() - 1
            });
            let of_context = by_context.entry(row.context).or_default();
            of_context.entry(row.own).or_default().push((list, *factor));
        }
        for (context, owns) in by_context {
            table.add_context(context, owns);
        }
        table
    }

    /// Adds the rows of a context, by own job: the list of partners and the weight of each.
    fn add_context(&mut self, context: usize, owns: BTreeMap<usize, Vec<(usize, f64)>>) {
        let (first_own, first_partner) = (self.owns.len(), self.partners.len());
        let mut partners: BTreeMap<usize, f64> = BTreeMap::new();
        let mut all = 0.0;
        for (own, rows) in owns {
            let first = self.factors.len();
            for (list, factor) in &rows {
                *partners.entry(*list).or_default() += factor;
                self.list_of.push(*list);
                self.factors.push(*factor);
            }
            let factor = rows.iter().map(|(_, factor)| factor).sum();
            all += factor;
            self.owns.push(OwnRows { own, factor, rows: first..self.factors.len() });
        }
        self.partners.extend(partners.into_iter().map(|(list, factor)| PartnerRows { list, factor }));
        self.contexts.push(ContextRows {
            context,
            factor: all,
            owns: first_own..self.owns.len(),
            partners: first_partner..self.partners.len(),
        });
    }

    /// What the observations say of a job with these similarities to each known job.
    pub(super) fn own_sums(&self, sensitivity: &[f64], partners: &[f64]) -> OwnSums {
        let pair = |rows: &OwnRows| (rows.factor, sensitivity[rows.own]);
        let of_context = |it: &ContextRows| Sum::of(self.owns[it.owns.clone()].iter().map(pair));
        OwnSums {
            sensitivity: self.contexts.iter().map(of_context).collect(),
            like: self.owns.iter().map(|rows| partners[rows.own]).collect(),
        }
    }

    /// What they say of partners with these mean similarities to each known job.
    pub(super) fn partner_sums(&self, pressure: &[f64], partners: &[f64]) -> PartnerSums {
        let (pressure, partners) = (self.mean_of_lists(pressure), self.mean_of_lists(partners));
        let pair = |rows: &PartnerRows| (rows.factor, pressure[rows.list]);
        let of_context = |it: &ContextRows| Sum::of(self.partners[it.partners.clone()].iter().map(pair));
        let of_own = |it: &OwnRows| {
            let rows = self.factors[it.rows.clone()].iter().zip(&self.list_of[it.rows.clone()]);
            Sum::of(rows.map(|(factor, list)| (*factor, partners[*list])))
        };
        PartnerSums {
            pressure: self.contexts.iter().map(of_context).collect(),
            interaction: self.owns.iter().map(of_own).collect(),
        }
    }

    /// Compares a question with all observations; `contexts` has the similarity to each known context.
    pub(super) fn compare(
        &self,
        contexts: &[f64],
        own: &OwnSums,
        partners: &PartnerSums,
        prior: &Prior,
    ) -> Comparison {
        let mut sum = 0.0;
        let mut closest = Closest { own: 0.0, partner: 0.0, both: 0.0 };
        for (at, ContextRows { context, factor, owns, .. }) in self.contexts.iter().enumerate() {
            let context = contexts[*context];
            let (sensitivity, pressure) = (own.sensitivity[at], partners.pressure[at]);
            let (mut both, mut most) = (0.0, 0.0_f64);
            for (like, sum) in own.like[owns.clone()].iter().zip(&partners.interaction[owns.clone()]) {
                both += like * sum.weighed;
                most = most.max(like * sum.most);
            }
            sum += context * (prior.common * factor + sensitivity.weighed + pressure.weighed);
            sum += (context * prior.pair_on_gpu + prior.pair) * both;
            closest.own = closest.own.max(context * sensitivity.most);
            closest.partner = closest.partner.max(context * pressure.most);
            closest.both = closest.both.max(context * most);
        }
        Comparison { sum, closest }
    }

    /// For each list of partners, the mean of the numbers of its jobs.
    fn mean_of_lists(&self, of_jobs: &[f64]) -> Vec<f64> {
        let mut first = 0;
        let mean = |end: &usize| {
            let list = &self.list_jobs[first..*end];
            first = *end;
            list.iter().map(|job| of_jobs[*job]).sum::<f64>() / list.len().max(1) as f64
        };
        self.list_ends.iter().map(mean).collect()
    }
}
