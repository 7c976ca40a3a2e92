//! Reservations: times for which nodes are kept for maintenance, or for the jobs of some users.
//!
//! A job starts on a node that will be reserved for others only if it leaves it before: by its time limit, or
//! because it may be preempted. What is left there is stopped so that its stop sequence ends when the
//! reservation begins. Maintenance drains its nodes and resumes them at its end.

use std::collections::BTreeSet;

use cohabit_policy::NodeWindow;
use cohabit_types::{
    Cause, Entrypoint, JobId, JobSpec, MOST_RESERVATIONS, NodeDrain, NodeId, NodeReservation, Principal,
    Refusal, RefusalCode, Reply, ReservationAccess, ReservationRequest, ReservationSet, ReservationTerms,
    Span, StopReason, Time, counted,
};

use crate::alarm::Alarm;
use crate::head::Head;
use crate::node::{Node, Schedulability};
use crate::reason::listed;
use crate::submission::SubmissionState;
use crate::transition::Transition;

/// How long a job that may be preempted has at least on a node that will be reserved.
const LEAST_STAY: Span = Span::from_secs(15 * 60);

/// How far ahead a reservation may begin, and how long it may last.
const LONGEST: Span = Span::from_secs(366 * 86_400);

/// What a client's clock may differ from that of the head.
const CLOCK_DIFFERENCE: Span = Span::from_secs(60);

const MINUTE: Span = Span::from_secs(60);

impl Head {
    /// The reservations that have not ended, by number.
    pub fn reservations(&self) -> impl Iterator<Item = &NodeReservation> {
        self.reservations.known.values()
    }

    /// Whether a node of this name will be reserved, or is.
    pub(crate) fn has_windows(&self, node: &str) -> bool {
        self.reservations().any(|it| it.nodes.contains(node))
    }

    /// The times for which a node of this name is reserved.
    pub(crate) fn windows(&self, node: &str, now: Time) -> Vec<NodeWindow> {
        let reserved = self.reservations().enumerate().filter(|(_, it)| it.nodes.contains(node));
        let window = |(position, it): (usize, &NodeReservation)| NodeWindow {
            starts_in: whole_minutes(it.from.since(now)),
            admits: match it.admits.is_maintenance() {
                true => ReservationSet::default(),
                false => ReservationSet::of([position]),
            },
        };
        reserved.map(window).collect()
    }

    /// What a job of this submission has to do with the reservations that are known.
    pub(crate) fn reservation_terms(&self, submission: &SubmissionState) -> ReservationTerms {
        if self.reservations.known.is_empty() {
            return ReservationTerms::default();
        }
        let admits = |(position, it): (usize, &NodeReservation)| {
            self.admits(&it.admits, &submission.user).then_some(position)
        };
        ReservationTerms {
            admitted: ReservationSet::of(self.reservations().enumerate().filter_map(admits)),
            leaves_within: leaves_within(self.spec_that_ends_it(&submission.spec)),
        }
    }

    /// The specification that says how long a job of this one runs at most: a child of an application ends
    /// with its application.
    fn spec_that_ends_it<'s>(&'s self, spec: &'s JobSpec) -> &'s JobSpec {
        let Entrypoint::Runner(work) = &spec.entrypoint else { return spec };
        self.submissions.get(&work.application.job.number).map_or(spec, |root| &root.spec)
    }

    /// Whether the jobs of a user run on nodes that are reserved like this.
    fn admits(&self, access: &ReservationAccess, user: &str) -> bool {
        let project = || self.shares.project_of(user);
        access.users.contains(user) || project().is_some_and(|(name, _)| access.projects.contains(name))
    }

    /// The placed jobs, not yet told to stop, that a reservation keeps off its nodes.
    fn kept_off_by(&self, reservation: &NodeReservation) -> Vec<JobId> {
        let nodes = self.nodes.values().filter(|node| reservation.nodes.contains(&node.name));
        let placed: BTreeSet<JobId> = nodes.flat_map(|node| node.jobs.iter().copied()).collect();
        placed.into_iter().filter(|job| self.is_kept_off(reservation, *job)).collect()
    }

    fn is_kept_off(&self, reservation: &NodeReservation, job: JobId) -> bool {
        let goes_on = self.jobs.get(&job).is_some_and(|it| it.stop_requested().is_none());
        let submission = self.submissions.get(&job.number);
        goes_on && submission.is_some_and(|it| !self.admits(&reservation.admits, &it.user))
    }

    /// A reservation that keeps the jobs of this submission off a node now, or so soon that one would be told
    /// to stop at once.
    pub(crate) fn reservation_against(
        &self,
        submission: &SubmissionState,
        node: &str,
        now: Time,
    ) -> Option<&NodeReservation> {
        let begins_by = now + submission.spec.stop.grace;
        let mut reserving = self.reservations().filter(|it| it.from <= begins_by && it.nodes.contains(node));
        reserving.find(|it| !self.admits(&it.admits, &submission.user))
    }

    /// The first reservation for which a placed job has to be told to stop, and when that is: its stop
    /// sequence ends when the reservation begins.
    pub(crate) fn closing(&self, id: JobId) -> Option<(Time, &NodeReservation)> {
        let job = self.jobs.get(&id).filter(|it| it.stop_requested().is_none())?;
        let live = job.live_attempt()?;
        let grace = self.submissions.get(&id.number)?.spec.stop.grace;
        let on: BTreeSet<&str> = live.ranks.iter().map(|rank| rank.node_name.as_str()).collect();
        let reserving = self.reservations().filter(|it| on.iter().any(|node| it.nodes.contains(*node)));
        let closings = reserving.filter(|it| self.is_kept_off(it, id)).map(|it| (it.from - grace, it));
        closings.min_by_key(|(at, _)| *at)
    }

    /// For a waiting job: the reservations that it may not run into.
    pub(crate) fn reservation_sentences(
        &self,
        id: JobId,
        submission: &SubmissionState,
        now: Time,
    ) -> Vec<String> {
        if !self.eligible.contains(&id) {
            return Vec::new();
        }
        let leaves_within = self.reservation_terms(submission).leaves_within;
        let may_run_into = |it: &NodeReservation| leaves_within.is_none_or(|span| now + span > it.from);
        let closed =
            self.reservations().filter(|it| !self.admits(&it.admits, &submission.user) && may_run_into(it));
        let sentence = |it: &NodeReservation| {
            let what = if it.admits.is_maintenance() { "maintenance" } else { "for others" };
            let reason = it.reason.as_ref().map_or_else(String::new, |why| format!(": {why}"));
            let nodes = it.nodes.iter().map(String::as_str).take(10).collect::<Vec<_>>().join(", ");
            let begins = match it.from.since(now) {
                Span::ZERO => "it has begun".to_owned(),
                ahead => format!("it begins in {ahead}"),
            };
            let ends = match it.until {
                None => "lasts until it is cancelled".to_owned(),
                Some(until) => format!("ends in {}", until.since(now)),
            };
            let number = it.number;
            format!("Reservation {number} ({what}{reason}) keeps it off {nodes}: {begins}, and {ends}.")
        };
        closed.map(sentence).collect()
    }

    /// The reservation that the same user asked for in the same words: a client repeats a request to which it
    /// got no answer.
    fn repeated_reservation(&self, by: &Principal, request: &ReservationRequest) -> Option<&NodeReservation> {
        let ReservationRequest { nodes, from, length, admits, reason, stop_jobs: _ } = request;
        let is_same = |it: &&NodeReservation| {
            it.by == by.user
                && from.unwrap_or(it.made_at) == it.from
                && length.map(|length| it.from + length) == it.until
                && nodes.iter().all(|node| it.nodes.contains(node))
                && nodes.len() == it.nodes.len()
                && it.admits == *admits
                && it.reason == *reason
        };
        self.reservations().find(is_same)
    }

    /// A reservation as it is asked for, with the next number.
    ///
    /// # Errors
    /// What is wrong with it.
    fn reservation_asked_for(
        &self,
        by: &Principal,
        request: ReservationRequest,
        now: Time,
    ) -> Result<NodeReservation, Refusal> {
        let ReservationRequest { nodes, from, length, admits, reason, stop_jobs } = request;
        let invalid = |message: String| Err(Refusal::new(RefusalCode::Invalid, message));
        let meant = nodes.iter().map(|name| Ok(self.nodes[&self.node_meant(name)?].name.clone()));
        let nodes = meant.collect::<Result<BTreeSet<String>, Refusal>>()?;
        if nodes.is_empty() {
            return invalid("the reservation names no node: name them with --nodes a,b".into());
        }
        let from = from.unwrap_or(now);
        if from + CLOCK_DIFFERENCE < now {
            let ago = now.since(from);
            return invalid(format!("the reservation would begin {ago} ago: leave --from out to begin now"));
        }
        if from.since(now) > LONGEST || length.is_some_and(|it| it > LONGEST || it < MINUTE) {
            return invalid(
                "a reservation begins within a year, and lasts from a minute to a year; without --for it lasts \
                 until it is cancelled".into(),
            );
        }
        self.check_projects(&admits)?;
        if self.reservations.known.len() >= MOST_RESERVATIONS {
            return Err(Refusal::new(
                RefusalCode::Limit,
                format!(
                    "there are {MOST_RESERVATIONS} reservations, and no more are allowed at once: cancel one, or name \
                     more nodes in each"
                ),
            ));
        }
        let from = from.max(now);
        let reservation = NodeReservation {
            number: self.reservations.last + 1,
            nodes,
            from,
            until: length.map(|length| from + length),
            admits,
            reason,
            by: by.user.clone(),
            made_at: now,
        };
        self.check_overlap(&reservation)?;
        if !stop_jobs {
            self.check_jobs_end(&reservation)?;
        }
        Ok(reservation)
    }

    fn check_projects(&self, admits: &ReservationAccess) -> Result<(), Refusal> {
        let projects = &self.shares.table().projects;
        let Some(unknown) = admits.projects.iter().find(|it| !projects.contains_key(*it)) else {
            return Ok(());
        };
        let known = projects.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let known = if known.is_empty() { "there are none".to_owned() } else { format!("there are {known}") };
        let message = format!("there is no project '{unknown}': {known} (cohabit share)");
        Err(Refusal::new(RefusalCode::NotFound, message))
    }

    fn check_overlap(&self, reservation: &NodeReservation) -> Result<(), Refusal> {
        let Some(other) = self.reservations().find(|it| it.overlaps(reservation)) else { return Ok(()) };
        let node = other.nodes.intersection(&reservation.nodes).next().map_or("", String::as_str);
        Err(Refusal::new(
            RefusalCode::WrongState,
            format!(
                "node {node} is reserved at that time already, by reservation {number} of {by}: cancel that one \
                 (cohabit reserve cancel {number}), or choose another time",
                number = other.number,
                by = other.by
            ),
        ))
    }

    /// Refuses a reservation into which a job may run that nobody may preempt.
    fn check_jobs_end(&self, reservation: &NodeReservation) -> Result<(), Refusal> {
        let may_run_into = |job: &JobId| {
            let spec = &self.submissions[&job.number].spec;
            let started_at = self.jobs[job].live_attempt().map_or(Time::EPOCH, |live| live.started_at);
            let ends_by = spec.time_limit.map(|limit| started_at + limit + spec.stop.grace);
            !spec.preemptible && ends_by.is_none_or(|end| end > reservation.from)
        };
        let jobs: Vec<JobId> = self.kept_off_by(reservation).into_iter().filter(may_run_into).collect();
        if jobs.is_empty() {
            return Ok(());
        }
        Err(Refusal::new(
            RefusalCode::WrongState,
            format!(
                "{} may still run there when the reservation begins ({}): --stop-jobs stops them then and queues \
                 them again",
                counted(jobs.len(), "job", "jobs"),
                listed(&jobs)
            ),
        ))
    }
}

impl Transition<'_> {
    pub(crate) fn reserve(&mut self, by: &Principal, request: ReservationRequest) -> Result<Reply, Refusal> {
        if let Some(same) = self.head.repeated_reservation(by, &request) {
            return Ok(Reply::Reservation(Box::new(same.clone())));
        }
        let reservation = self.head.reservation_asked_for(by, request, self.now)?;
        let number = reservation.number;
        self.head.reservations.last = number;
        self.set_alarm(reservation.from, Alarm::Reservation(number));
        if let Some(until) = reservation.until {
            self.set_alarm(until, Alarm::Reservation(number));
        }
        let kept_off = self.head.kept_off_by(&reservation);
        self.head.reservations.known.insert(number, reservation.clone());
        kept_off.into_iter().for_each(|job| self.watch_closing(job));
        self.reservations_changed();
        if reservation.from <= self.now {
            self.begin_reservation(&reservation);
        }
        Ok(Reply::Reservation(Box::new(reservation)))
    }

    pub(crate) fn cancel_reservation(&mut self, number: u64) -> Result<Reply, Refusal> {
        let Some(reservation) = self.head.reservations.known.remove(&number) else {
            let message =
                format!("there is no reservation {number}: cohabit reserve list shows those there are");
            return Err(Refusal::new(RefusalCode::NotFound, message));
        };
        self.end_reservation(&reservation);
        Ok(Reply::Reservation(Box::new(reservation)))
    }

    /// A reservation may begin or end now.
    pub(crate) fn advance_reservation(&mut self, number: u64) {
        let Some(reservation) = self.head.reservations.known.get(&number).cloned() else { return };
        if reservation.until.is_some_and(|until| until <= self.now) {
            self.head.reservations.known.remove(&number);
            self.end_reservation(&reservation);
        } else if reservation.from <= self.now {
            self.begin_reservation(&reservation);
        }
    }

    /// Nodes of maintenance are drained. What still runs on the nodes is stopped and queued again.
    fn begin_reservation(&mut self, reservation: &NodeReservation) {
        for id in self.nodes_of(reservation) {
            self.begin_maintenance(id, reservation);
        }
        for job in self.head.kept_off_by(reservation) {
            self.stop_for(job, reservation);
        }
        if reservation.admits.is_maintenance() && reservation.until.is_none() {
            // From now on it is a drain like any other.
            self.head.reservations.known.remove(&reservation.number);
        }
        self.reservations_changed();
    }

    /// A node is drained where the reservation is for maintenance, unless somebody drained it before.
    fn begin_maintenance(&mut self, id: NodeId, reservation: &NodeReservation) {
        let (now, number) = (self.now, reservation.number);
        let is_open = |node: &&mut Node| node.schedulability == Schedulability::Open;
        let Some(node) = self.node_mut(id).filter(is_open) else { return };
        if reservation.admits.is_maintenance() {
            node.schedulability = Schedulability::Drained;
            node.drain = Some(NodeDrain {
                by: reservation.by.clone(),
                at: now,
                reason: reservation.reason.clone(),
                deadline: None,
                reservation: reservation.until.map(|_| number),
            });
        }
    }

    /// A node joined for the first time: maintenance may be under way.
    pub(crate) fn join_maintenance(&mut self, id: NodeId) {
        let Some(name) = self.head.nodes.get(&id).map(|node| node.name.clone()) else { return };
        let now = self.now;
        let under_way = |it: &&NodeReservation| it.from <= now && it.nodes.contains(&name);
        let reservation = self.head.reservations().find(under_way).cloned();
        if let Some(reservation) = reservation {
            self.begin_maintenance(id, &reservation);
        }
    }

    /// Nodes that the reservation drained are resumed.
    fn end_reservation(&mut self, reservation: &NodeReservation) {
        for id in self.nodes_of(reservation) {
            let drained_by_it =
                |node: &Node| node.drain.as_ref().and_then(|it| it.reservation) == Some(reservation.number);
            if let Some(node) = self.node_mut(id).filter(|node| drained_by_it(node)) {
                (node.schedulability, node.drain) = (Schedulability::Open, None);
            }
        }
        self.reservations_changed();
    }

    /// A node that is resumed leaves maintenance that has begun, and is not drained later by `drain --by`.
    pub(crate) fn leave_maintenance(&mut self, id: NodeId) {
        let Some(name) = self.head.nodes.get(&id).map(|node| node.name.clone()) else { return };
        let now = self.now;
        let known = &mut self.head.reservations.known;
        let is_left = |it: &NodeReservation| it.from <= now || it.until.is_none();
        let mut has_left = false;
        for reservation in known.values_mut().filter(|it| it.admits.is_maintenance() && is_left(it)) {
            has_left |= reservation.nodes.remove(&name);
        }
        known.retain(|_, reservation| !reservation.nodes.is_empty());
        if has_left {
            self.reservations_changed();
        }
    }

    /// Sets the alarm for the time at which a placed job has to be told to stop, if it ever has.
    pub(crate) fn watch_closing(&mut self, id: JobId) {
        if let Some((at, _)) = self.head.closing(id) {
            self.set_alarm(at, Alarm::JobClosing(id));
        }
    }

    /// A placed job may have to be told to stop, because a node of it will be reserved.
    pub(crate) fn stop_before_reservation(&mut self, id: JobId) {
        let due = self.head.closing(id).filter(|(at, _)| *at <= self.now);
        if let Some(reservation) = due.map(|(_, it)| it.clone()) {
            self.stop_for(id, &reservation);
        }
    }

    fn stop_for(&mut self, id: JobId, reservation: &NodeReservation) {
        let cause = std::mem::replace(&mut self.cause, Cause::User(reservation.by.clone()));
        self.stop_attempt(id, StopReason::Requeued);
        self.cause = cause;
    }

    fn nodes_of(&self, reservation: &NodeReservation) -> Vec<NodeId> {
        let named = self.head.nodes.iter().filter(|(_, node)| reservation.nodes.contains(&node.name));
        named.map(|(id, _)| *id).collect()
    }

    /// Where each job may run has changed.
    fn reservations_changed(&mut self) {
        let all = self.head.all_ids();
        self.changed_ids.jobs.extend(all.jobs);
        self.changed_ids.nodes.extend(all.nodes);
        self.head.replan_needed = true;
    }
}

/// Within which time of its start a job leaves a node that will be reserved; `None` if it need not.
fn leaves_within(spec: &JobSpec) -> Option<Span> {
    let by_limit = spec.time_limit.map(|limit| limit + spec.stop.grace);
    match spec.preemptible {
        true => Some(by_limit.map_or(LEAST_STAY, |span| span.min(LEAST_STAY))),
        false => by_limit,
    }
}

fn whole_minutes(span: Span) -> Span {
    Span::from_micros(span.as_micros() / MINUTE.as_micros() * MINUTE.as_micros())
}
