//! What was known of earlier jobs when a job was submitted: the statistics of each cohort that it belongs to.

use crate::cohort::Statistics;

/// One or two jobs of a kind tell less than the latest ones of its group, whatever those train.
pub(crate) const MIN_OF_KIND: u64 = 3;

/// What was known, when a job was submitted, of the jobs that had ended before.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct CohortStatistics {
    /// Same user, group, devices, model and batch size; only for jobs that state one of the last two.
    pub(crate) kind: Option<Statistics>,
    /// Same user, group and devices.
    pub(crate) group_devices: Option<Statistics>,
    /// Same user and group.
    pub(crate) group: Option<Statistics>,
    /// Same user.
    pub(crate) user: Option<Statistics>,
    /// Same model.
    pub(crate) model: Option<Statistics>,
    /// Same devices.
    pub(crate) shape: Option<Statistics>,
    /// Any.
    pub(crate) all: Option<Statistics>,
}

/// The closest cohort with an ended job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatchLevel {
    /// Same user, group, devices, model and batch size.
    Kind,
    /// Same user, group and devices.
    GroupDevices,
    /// Same user and group.
    Group,
    /// Same user.
    User,
    /// Same devices.
    Shape,
    /// Nothing in common.
    All,
}

impl CohortStatistics {
    /// The closest cohort with an ended job; of its kind, with several.
    pub(crate) fn nearest(&self) -> Option<(MatchLevel, Statistics)> {
        let from_close_to_far = [
            (MatchLevel::Kind, self.kind.filter(|it| it.count >= MIN_OF_KIND)),
            (MatchLevel::GroupDevices, self.group_devices),
            (MatchLevel::Group, self.group),
            (MatchLevel::User, self.user),
            (MatchLevel::Shape, self.shape),
            (MatchLevel::All, self.all),
        ];
        from_close_to_far.into_iter().find_map(|(match_level, statistics)| Some((match_level, statistics?)))
    }

    /// The anchor, the estimate without a forest: the recent median of the closest cohort; 0 without one.
    pub(crate) fn anchor(&self) -> f64 {
        self.nearest().map_or(0.0, |(_, statistics)| statistics.median)
    }
}
