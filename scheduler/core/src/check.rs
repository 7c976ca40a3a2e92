//! What must be true between any two events.

use std::collections::BTreeMap;

use cohabit_types::{Bytes, JobId, JobState, NodeId, Share};

use crate::head::Head;
use crate::job::Job;

impl Head {
    /// Checks the invariants.
    ///
    /// # Panics
    /// With the broken promise, if there is one: the head is at fault then.
    pub fn check(&self) {
        for (id, job) in &self.jobs {
            self.check_job(*id, job);
        }
        self.check_sets();
        self.check_submissions();
        self.check_ledger();
    }

    fn check_job(&self, id: JobId, job: &Job) {
        let placed = matches!(job.state, JobState::Running | JobState::Completing);
        assert_eq!(
            placed,
            job.live_attempt().is_some(),
            "job {id} is {} but its attempt says otherwise",
            job.state
        );
        assert_eq!(
            job.state.is_terminal(),
            job.ended_at.is_some(),
            "job {id} is {} at {:?}",
            job.state,
            job.ended_at
        );
        let stopping = job.live_attempt().is_some_and(|attempt| attempt.stopping.is_some());
        assert_eq!(
            job.state == JobState::Completing,
            stopping,
            "job {id} is {} but stopping is {stopping}",
            job.state
        );
        let live = job.attempts.iter().filter(|attempt| attempt.is_live()).count();
        assert!(live <= 1, "job {id} has {live} live attempts");
        let numbers: Vec<u32> = job.attempts.iter().map(|attempt| attempt.number).collect();
        assert!(
            numbers.iter().copied().eq(1..=numbers.len() as u32),
            "job {id} counts its attempts {numbers:?}"
        );
        for attempt in &job.attempts {
            let ranks_live = attempt.ranks.iter().any(|rank| rank.is_live());
            assert_eq!(
                attempt.is_live(),
                ranks_live,
                "attempt {} of job {id} lives without ranks",
                attempt.number
            );
        }
    }

    fn check_sets(&self) {
        for id in &self.eligible {
            let job = &self.jobs[id];
            assert_eq!(job.state, JobState::Pending, "job {id} is eligible");
            assert!(job.waits_for.is_empty(), "job {id} is eligible but waits for others");
        }
        for (id, job) in &self.jobs {
            assert_eq!(
                self.unended.contains(id),
                !job.state.is_terminal(),
                "job {id} is {} in the wrong set",
                job.state
            );
            let ended = job.ended_at.is_some_and(|at| self.ended.contains(&(at, *id)));
            assert_eq!(ended, job.state.is_terminal(), "job {id} is {} but not among the ended", job.state);
        }
        assert_eq!(
            self.ended.len() + self.unended.len(),
            self.jobs.len(),
            "a job is counted twice or not at all"
        );
    }

    fn check_submissions(&self) {
        let mut counted: BTreeMap<u64, BTreeMap<JobState, u64>> = BTreeMap::new();
        for (id, job) in &self.jobs {
            *counted.entry(id.number).or_default().entry(job.state).or_default() += 1;
        }
        for (number, submission) in &self.submissions {
            let all_there = submission.spec.array.as_ref().map_or(1, |array| array.len());
            let here = counted.get(number).map_or(0, |states| states.values().sum());
            if here == all_there {
                assert_eq!(
                    Some(&submission.states),
                    counted.get(number),
                    "submission {number} counts wrongly"
                );
            }
            let limit = submission.spec.array.as_ref().and_then(|array| array.at_once);
            let within = limit.is_none_or(|limit| submission.placed() <= u64::from(limit));
            assert!(within, "array {number} runs {} members at once", submission.placed());
        }
    }

    /// What nodes say is taken is the sum of what live attempts hold.
    fn check_ledger(&self) {
        let mut cpus: BTreeMap<NodeId, u32> = BTreeMap::new();
        let mut jobs: BTreeMap<NodeId, Vec<JobId>> = BTreeMap::new();
        for (id, job) in &self.jobs {
            let Some(attempt) = job.live_attempt() else { continue };
            for part in &attempt.placement.parts {
                *cpus.entry(part.node).or_default() += self.submissions[&id.number].spec.demand.cpus;
                jobs.entry(part.node).or_default().push(*id);
            }
        }
        for (id, node) in &self.nodes {
            assert_eq!(
                node.cpus_used,
                cpus.get(id).copied().unwrap_or(0),
                "cores of {} are booked wrongly",
                node.name
            );
            let held: Vec<JobId> = node.jobs.iter().copied().collect();
            assert_eq!(
                held,
                jobs.get(id).cloned().unwrap_or_default(),
                "jobs of {} are booked wrongly",
                node.name
            );
            for device in &node.devices {
                let name = &device.device.id;
                assert!(
                    device.used <= Share::WHOLE,
                    "device {name} of {} is taken at {}",
                    node.name,
                    device.used
                );
                assert_eq!(
                    device.used == Share(0),
                    device.residents.is_empty(),
                    "device {name} is held by nobody"
                );
                let fits = device.device.memory.is_none_or(|memory| device.memory_used <= memory);
                assert!(
                    fits,
                    "device {name} has {} booked of {:?}",
                    device.memory_used, device.device.memory
                );
                let claimed: Bytes =
                    device.residents.iter().filter_map(|job| self.demand(*job).gpu_memory).sum();
                assert_eq!(device.memory_used, claimed, "memory of {name} is booked wrongly");
            }
        }
    }
}
