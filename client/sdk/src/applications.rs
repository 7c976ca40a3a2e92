//! Live applications: who they are, and what their coordinators tell of them.

use cohabit_types::{
    ActorListing, ApplicationAnswer, ApplicationOwner, ApplicationQuestion, ApplicationRecord, JobId,
    ObjectListing, TaskListing,
};

use crate::Error;
use crate::call::{Client, long_poll_context, short_call_context};
use crate::link::HeadConnection;

impl Client {
    /// The user's applications that have not ended, in the order of their names.
    ///
    /// # Errors
    /// As for every call.
    pub async fn applications(&self) -> Result<Vec<ApplicationRecord>, Error> {
        self.applications_of(ApplicationOwner::Caller).await
    }

    /// The applications of the user, or of all users, that have not ended, by user and name.
    ///
    /// # Errors
    /// As for every call.
    pub async fn applications_of(&self, owner: ApplicationOwner) -> Result<Vec<ApplicationRecord>, Error> {
        self.call(
            |to: HeadConnection| async move { to.service.applications(short_call_context(), owner).await },
        )
        .await
    }

    /// The actors of the application with this root job, as its coordinator tells. A coordinator that
    /// does not answer is not asked again.
    ///
    /// # Errors
    /// [`Error::Refused`] if it is no live application, or its coordinator does not answer;
    /// [`Error::NotAllowed`] if it belongs to somebody else.
    pub async fn actors(&self, application: JobId) -> Result<ActorListing, Error> {
        let ask = |to: HeadConnection| async move {
            to.service.actors(short_call_context(), application).await.map(Ok)
        };
        Ok(self.call(ask).await??)
    }

    /// The tasks of the application with this root job, as its coordinator tells. A coordinator that
    /// does not answer is not asked again.
    ///
    /// # Errors
    /// As for [`Client::actors`].
    pub async fn tasks(&self, application: JobId) -> Result<TaskListing, Error> {
        let ask = |to: HeadConnection| async move {
            to.service.tasks(short_call_context(), application).await.map(Ok)
        };
        Ok(self.call(ask).await??)
    }

    /// The objects of the application with this root job, as its coordinator tells. A coordinator that
    /// does not answer is not asked again.
    ///
    /// # Errors
    /// As for [`Client::actors`].
    pub async fn objects(&self, application: JobId) -> Result<ObjectListing, Error> {
        let ask = |to: HeadConnection| async move {
            to.service.objects(short_call_context(), application).await.map(Ok)
        };
        Ok(self.call(ask).await??)
    }

    /// Waits until somebody asks about the application of this coordinator; perhaps none has, when the head
    /// has waited for long enough.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] for all but coordinators.
    pub async fn questions(&self) -> Result<Vec<ApplicationQuestion>, Error> {
        self.call(|to: HeadConnection| async move { to.service.questions(long_poll_context()).await }).await
    }

    /// Answers a question about the application of this coordinator.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] for all but coordinators; [`Error::Refused`] if the answer is too long or one to
    /// another question.
    pub async fn answer_question(&self, number: u64, answer: ApplicationAnswer) -> Result<(), Error> {
        self.call(|to: HeadConnection| {
            let answer = Box::new(answer.clone());
            async move { to.service.answer_question(short_call_context(), number, answer).await }
        })
        .await
    }
}
