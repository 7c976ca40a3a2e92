//! Looking at live applications: the head lists them, and their coordinators tell the rest.

use cohabit_types::{
    ActorListing, ApplicationAnswer, ApplicationOwner, ApplicationRecord, ApplicationTopic, JobId,
    ObjectListing, Refusal, RefusalCode, Role, TaskListing,
};

use super::client::ClientSession;
use crate::driver::Query;

impl ClientSession {
    /// Applications that have not ended, as far as this client may see them.
    pub(super) async fn live_applications(
        &self,
        owner: ApplicationOwner,
    ) -> Result<Vec<ApplicationRecord>, Refusal> {
        let user = match owner {
            ApplicationOwner::Caller => Some(self.by.user.clone()),
            ApplicationOwner::Anyone => None,
        };
        let found = self.ask(|reply_to| Query::Applications(user, reply_to)).await?;
        Ok(self.visible_applications(found))
    }

    pub(super) async fn actors_of(&self, root: JobId) -> Result<ActorListing, Refusal> {
        match self.ask_coordinator(root, ApplicationTopic::Actors).await? {
            ApplicationAnswer::Actors(listing) => Ok(listing),
            other @ (ApplicationAnswer::Tasks(_) | ApplicationAnswer::Objects(_)) => Err(wrong(&other)),
        }
    }

    pub(super) async fn tasks_of(&self, root: JobId) -> Result<TaskListing, Refusal> {
        match self.ask_coordinator(root, ApplicationTopic::Tasks).await? {
            ApplicationAnswer::Tasks(listing) => Ok(listing),
            other @ (ApplicationAnswer::Actors(_) | ApplicationAnswer::Objects(_)) => Err(wrong(&other)),
        }
    }

    pub(super) async fn objects_of(&self, root: JobId) -> Result<ObjectListing, Refusal> {
        match self.ask_coordinator(root, ApplicationTopic::Objects).await? {
            ApplicationAnswer::Objects(listing) => Ok(listing),
            other @ (ApplicationAnswer::Actors(_) | ApplicationAnswer::Tasks(_)) => Err(wrong(&other)),
        }
    }

    /// The answer of the coordinator of an application of this user; admins may ask all.
    async fn ask_coordinator(
        &self,
        root: JobId,
        topic: ApplicationTopic,
    ) -> Result<ApplicationAnswer, Refusal> {
        let record = self.record(root).await?;
        if self.by.role != Role::Admin && self.by.user != record.user {
            let message = format!(
                "job {root} belongs to {}: only its owner and admins may see its {topic}",
                record.user
            );
            return Err(Refusal::new(RefusalCode::NotAllowed, message));
        }
        let Some(application) = self.ask(|reply_to| Query::Application(root, reply_to)).await? else {
            let message = format!(
                "job {root} is no live application: it is {}. `cohabit applications` lists those that live",
                record.state
            );
            return Err(Refusal::new(RefusalCode::WrongState, message));
        };
        let Some(attempt) = application.attempt else {
            let message = format!(
                "application {root} is {} and has no coordinator: {}. See `cohabit explain {root}`",
                record.state, record.reason
            );
            return Err(Refusal::new(RefusalCode::WrongState, message));
        };
        let (answer, bytes) = self.session_context.application_questions.ask(attempt, topic).await?;
        self.pace_answer(bytes).await;
        Ok(answer)
    }
}

/// Answers are checked against their questions where they come in.
fn wrong(answer: &ApplicationAnswer) -> Refusal {
    let topic = answer.topic();
    Refusal::new(RefusalCode::Internal, format!("the coordinator told its {topic}, which nobody asked for"))
}
