//! What can be asked of a head: one method for each question and each change.
//!
//! This file holds what is asked once. Following a job over time is in `watch` and `logs`, pages of jobs are
//! in `list`, applications in `applications`, and how a call is repeated is in `call`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use cohabit_net::HelloAccepted;
use cohabit_types::{
    ChangeResult, CopyId, CopyPiece, CopyRead, CopyRequest, DrainRequest, DryRun, ExecId, ExecOutput,
    ExecRead, ExecRequest, Explanation, ForwardId, ForwardOutput, ForwardPiece, ForwardRead, ForwardRequest,
    HeadStatus, InputPiece, IssuedToken, JobChange, JobId, JobRecord, JobRef, JobSettings, MetricSeries,
    ModelChoice, Models, NewToken, NodeRecord, RankId, RefusedWorker, TokenRecord,
};

use crate::call::{Client, PAGE, long_poll_context, short_call_context};
use crate::connect::on_blocking_thread;
use crate::link::HeadConnection;
use crate::{ConnectOptions, Error, JobHandle, Submission};

impl Client {
    /// Connects to the head. This first connection is tried once, so that a wrong address is reported at
    /// once.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if nothing answers there, [`Error::NotAllowed`] if the token is no good,
    /// [`Error::Link`] if the two sides cannot talk.
    pub async fn connect(connect: ConnectOptions) -> Result<Client, Error> {
        let client = Client::disconnected(connect);
        client.link.connection().await?;
        Ok(client)
    }

    /// Connects to the head that the environment or a configuration file names, as the command line does; see
    /// [`ConnectOptions::from_environment`]. The files are read on a blocking thread.
    ///
    /// # Errors
    /// [`Error::Configuration`] if there is no address or no readable token; else those of
    /// [`Client::connect`].
    pub async fn connect_from_environment() -> Result<Client, Error> {
        Client::connect(on_blocking_thread(ConnectOptions::from_environment).await?).await
    }

    /// Connects to the head whose state directory this is, as its admin; see [`ConnectOptions::local`]. The
    /// files are read on a blocking thread, and again before each further connection.
    ///
    /// # Errors
    /// [`Error::Configuration`] if no head has started with it; else those of [`Client::connect`].
    pub async fn connect_local(state_dir: impl Into<PathBuf>) -> Result<Client, Error> {
        let state_dir = state_dir.into();
        let client =
            on_blocking_thread(move || Client::finding(move || ConnectOptions::local(&state_dir))).await?;
        client.link.connection().await?;
        Ok(client)
    }

    /// What the head said when it let this client in: its cluster and build, and the user of the token.
    ///
    /// # Errors
    /// Those of [`Client::connect`].
    pub async fn accepted(&self) -> Result<HelloAccepted, Error> {
        self.call(|to| async move { Ok(Ok(HelloAccepted::clone(&to.accepted))) }).await
    }

    /// Submits a job. The same submission submitted again, after an error for example, is the same job.
    ///
    /// # Errors
    /// [`Error::Refused`] if the head does not take it, for example because no node can ever meet its demand.
    pub async fn submit(&self, submission: &Submission) -> Result<JobHandle, Error> {
        let ask = |to: HeadConnection| {
            let (spec, key) = (Box::new(submission.spec().clone()), submission.key().to_owned());
            async move { to.service.submit(short_call_context(), spec, Some(key)).await }
        };
        let receipt = self.call(ask).await?;
        Ok(JobHandle::new(self.clone(), receipt.job).with_notes(receipt.notes))
    }

    /// A handle for a job that was submitted before. Whether there is such a job shows when it is used.
    #[must_use]
    pub fn job(&self, id: JobId) -> JobHandle {
        JobHandle::new(self.clone(), id)
    }

    /// Applies a change to jobs; returns the result for each, in the order asked.
    ///
    /// Cancelling, killing, holding and releasing are repeated when the link breaks, for they do no harm
    /// twice.
    /// Not retried: requeueing twice would start a job twice.
    ///
    /// # Errors
    /// [`Error::Unconfirmed`] if the link broke while a requeue was under way.
    pub async fn change(
        &self,
        change: JobChange,
        jobs: &[JobId],
    ) -> Result<Vec<(JobId, ChangeResult)>, Error> {
        let mut results = Vec::with_capacity(jobs.len());
        for page in jobs.chunks(PAGE) {
            let ask = |to: HeadConnection| {
                let page = page.to_vec();
                async move { to.service.change_jobs(short_call_context(), change, page).await }
            };
            results.extend(match change {
                JobChange::Requeue => self.call_once("requeue", ask).await?,
                JobChange::Cancel
                | JobChange::Kill
                | JobChange::Withdraw
                | JobChange::Hold
                | JobChange::Release => self.call(ask).await?,
            });
        }
        Ok(results)
    }

    /// Changes the settings of jobs that wait; returns the result for each, in the order asked.
    ///
    /// # Errors
    /// Those of the link.
    pub async fn update(
        &self,
        update: &JobSettings,
        jobs: &[JobId],
    ) -> Result<Vec<(JobId, ChangeResult)>, Error> {
        let mut results = Vec::with_capacity(jobs.len());
        for page in jobs.chunks(PAGE) {
            let ask = |to: HeadConnection| {
                let (update, page) = (update.clone(), page.to_vec());
                async move { to.service.update_jobs(short_call_context(), update, page).await }
            };
            results.extend(self.call(ask).await?);
        }
        Ok(results)
    }

    /// Gives a node no new jobs; returns its name.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such node.
    pub async fn drain(&self, drain: DrainRequest) -> Result<String, Error> {
        self.call(|to: HeadConnection| {
            let drain = drain.clone();
            async move { to.service.drain_node(short_call_context(), drain).await }
        })
        .await
    }

    /// Gives a drained node jobs again; returns its name.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such node.
    pub async fn resume(&self, node: impl Into<String>) -> Result<String, Error> {
        let node = node.into();
        self.call(|to: HeadConnection| {
            let node = node.clone();
            async move { to.service.resume_node(short_call_context(), node).await }
        })
        .await
    }

    /// Forgets which worker a node belongs to, so that its next one is taken for it; returns its name.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such node, or any worker may join as it already.
    pub async fn unbind(&self, node: impl Into<String>) -> Result<String, Error> {
        let node = node.into();
        self.call(|to: HeadConnection| {
            let node = node.clone();
            async move { to.service.unbind_node(short_call_context(), node).await }
        })
        .await
    }

    /// Workers that wanted to act as a node of another one, since the head started.
    ///
    /// # Errors
    /// [`Error::Refused`] without an admin's token.
    pub async fn refused_workers(&self) -> Result<Vec<RefusedWorker>, Error> {
        self.call(|to: HeadConnection| async move { to.service.refused_workers(short_call_context()).await })
            .await
    }

    /// Makes a token. Not retried: the secret is returned only once.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] for all but admins; [`Error::Unconfirmed`] if the link broke meanwhile.
    pub async fn create_token(&self, token: NewToken) -> Result<IssuedToken, Error> {
        self.call_once("token create", |to: HeadConnection| {
            let token = token.clone();
            async move { to.service.create_token(short_call_context(), token).await }
        })
        .await
    }

    /// All tokens, without secrets.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] for all but admins.
    pub async fn tokens(&self) -> Result<Vec<TokenRecord>, Error> {
        self.call(|to: HeadConnection| async move { to.service.list_tokens(short_call_context()).await })
            .await
    }

    /// The token of this client, without its secret.
    ///
    /// # Errors
    /// Those of the link.
    pub async fn own_token(&self) -> Result<TokenRecord, Error> {
        self.call(|to: HeadConnection| async move { to.service.own_token(short_call_context()).await }).await
    }

    /// How the head is set up.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] for all but admins.
    pub async fn head_status(&self) -> Result<HeadStatus, Error> {
        self.call(|to: HeadConnection| async move { to.service.head_status(short_call_context()).await })
            .await
    }

    /// What keeps the head from accepting changes, a sentence with the remedy for each problem.
    ///
    /// # Errors
    /// Those of the link.
    pub async fn head_problems(&self) -> Result<Vec<String>, Error> {
        self.call(|to: HeadConnection| async move { to.service.head_problems(short_call_context()).await })
            .await
    }

    /// Revokes a token, at once. Not retried.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] for all but admins; [`Error::Refused`] if there is no such token;
    /// [`Error::Unconfirmed`] if the link broke meanwhile.
    pub async fn revoke_token(&self, name: impl Into<String>) -> Result<(), Error> {
        let name = name.into();
        self.call_once("token revoke", |to: HeadConnection| {
            let name = name.clone();
            async move { to.service.revoke_token(short_call_context(), name).await }
        })
        .await
    }

    /// The interference models of the head.
    ///
    /// # Errors
    /// Those of the link.
    pub async fn models(&self) -> Result<Models, Error> {
        self.call(|to: HeadConnection| async move { to.service.list_models(short_call_context()).await })
            .await
    }

    /// Chooses the interference model that the head uses; returns all models.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] for all but admins; [`Error::Refused`] if there is no such version.
    pub async fn choose_model(&self, choice: ModelChoice) -> Result<Models, Error> {
        self.call(
            |to: HeadConnection| async move { to.service.choose_model(short_call_context(), choice).await },
        )
        .await
    }

    /// The jobs that these references mean, in their order.
    ///
    /// # Errors
    /// [`Error::Refused`] if one means none, or a name means several.
    pub async fn resolve(&self, references: &[JobRef]) -> Result<Vec<JobId>, Error> {
        self.call(|to: HeadConnection| {
            let references = references.to_vec();
            async move { to.service.resolve(short_call_context(), references).await }
        })
        .await
    }

    /// The records of these jobs, in their order.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such job.
    pub async fn show(&self, jobs: &[JobId]) -> Result<Vec<JobRecord>, Error> {
        let mut records = BTreeMap::new();
        let mut left: Vec<JobId> = BTreeSet::from_iter(jobs.iter().copied()).into_iter().collect();
        while !left.is_empty() {
            let page = &left[..left.len().min(PAGE)];
            let ask = |to: HeadConnection| {
                let page = page.to_vec();
                async move { to.service.show(short_call_context(), page).await }
            };
            // The head answers for the first ones where a message cannot hold all.
            let shown = self.call(ask).await?;
            if shown.is_empty() {
                break;
            }
            records.extend(shown.into_iter().map(|record| (record.id, record)));
            left.retain(|job| !records.contains_key(job));
        }
        Ok(jobs.iter().filter_map(|job| records.get(job)).cloned().collect())
    }

    /// Why a job waits, or why it ended as it did.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such job.
    pub async fn explain(&self, job: JobId) -> Result<Explanation, Error> {
        self.call(|to: HeadConnection| async move { to.service.explain(short_call_context(), job).await })
            .await
    }

    /// Where a job would run if it were submitted now, beside which jobs, and its forecast.
    /// Nothing is submitted.
    ///
    /// # Errors
    /// [`Error::Refused`] as for [`Client::submit`], or at once if the head's policy cannot say in time.
    pub async fn dry_run(&self, submission: &Submission) -> Result<DryRun, Error> {
        let ask = |to: HeadConnection| {
            let spec = Box::new(submission.spec().clone());
            async move { to.service.dry_run(short_call_context(), spec).await.map(Ok) }
        };
        let answer = self.call(ask).await?;
        Ok(*answer?)
    }

    /// All nodes.
    ///
    /// # Errors
    /// Those of the link.
    pub async fn nodes(&self) -> Result<Vec<NodeRecord>, Error> {
        self.call(|to: HeadConnection| async move { to.service.nodes(short_call_context()).await }).await
    }

    /// Sends a piece of the standard input of a job's first rank, for a job that was submitted with
    /// [`JobBuilder::sent_input`](crate::JobBuilder::sent_input). Answers how many bytes of the input its
    /// worker has: the next piece begins there. For the user of the job and admins.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] if the job is another user's; [`Error::Refused`] with the code `unavailable`
    /// while the rank does not run, and with another one if it reads no input.
    pub async fn write_input(&self, piece: InputPiece) -> Result<u64, Error> {
        let write = move |to: HeadConnection| {
            let piece = piece.clone();
            async move { to.service.write_input(short_call_context(), piece).await.map(Ok) }
        };
        Ok(self.call(write).await??)
    }

    /// Starts a further process beside a running rank, in its environment. It ends when nobody has asked for
    /// its output for a minute. For the user of the job and admins.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] if the job is another user's; [`Error::Refused`] if the rank does not run, or
    /// has too many further processes.
    pub async fn start_exec(&self, request: ExecRequest) -> Result<(), Error> {
        let ask = |to: HeadConnection| {
            let request = Box::new(request.clone());
            async move { to.service.start_exec(short_call_context(), request).await.map(Ok) }
        };
        Ok(self.call(ask).await??)
    }

    /// A piece of the output of a further process; waits for more at its end.
    ///
    /// # Errors
    /// As for [`Client::start_exec`]; the code is `not_found` once the process is forgotten, and
    /// `unavailable` while its worker is away.
    pub async fn read_exec(&self, read: ExecRead) -> Result<ExecOutput, Error> {
        let ask =
            |to: HeadConnection| async move { to.service.read_exec(long_poll_context(), read).await.map(Ok) };
        Ok(self.call(ask).await??)
    }

    /// Ends a further process, if it runs, and forgets it.
    ///
    /// # Errors
    /// As for [`Client::start_exec`].
    pub async fn end_exec(&self, process: ExecId) -> Result<(), Error> {
        let ask = |to: HeadConnection| async move {
            to.service.end_exec(short_call_context(), process).await.map(Ok)
        };
        Ok(self.call(ask).await??)
    }

    /// Opens a connection to a port on the loopback address of a rank's node, or asks whether that could be
    /// done. It is closed when nobody has asked for its bytes for a minute. For the user of the job and
    /// admins.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] if the job is another user's, or a process listens there that is not the job's;
    /// [`Error::Refused`] if nobody listens there, the rank does not run, or has too many connections.
    pub async fn open_forward(&self, request: ForwardRequest) -> Result<(), Error> {
        let ask = |to: HeadConnection| async move {
            to.service.open_forward(short_call_context(), request).await.map(Ok)
        };
        Ok(self.call(ask).await??)
    }

    /// Bytes from the server of a connection; waits where there are none.
    ///
    /// # Errors
    /// As for [`Client::open_forward`]; the code is `not_found` once the connection is gone, and
    /// `unavailable` while its worker is away.
    pub async fn read_forward(&self, read: ForwardRead) -> Result<ForwardOutput, Error> {
        let ask = |to: HeadConnection| async move {
            to.service.read_forward(long_poll_context(), read).await.map(Ok)
        };
        Ok(self.call(ask).await??)
    }

    /// Bytes to the server of a connection. Answers how many it has got since its begin: the next piece
    /// begins there.
    ///
    /// # Errors
    /// As for [`Client::read_forward`].
    pub async fn write_forward(&self, piece: ForwardPiece) -> Result<u64, Error> {
        let ask = |to: HeadConnection| {
            let piece = piece.clone();
            async move { to.service.write_forward(long_poll_context(), piece).await.map(Ok) }
        };
        Ok(self.call(ask).await??)
    }

    /// Closes a connection, if it is open.
    ///
    /// # Errors
    /// As for [`Client::open_forward`].
    pub async fn close_forward(&self, connection: ForwardId) -> Result<(), Error> {
        let ask = |to: HeadConnection| async move {
            to.service.close_forward(short_call_context(), connection).await.map(Ok)
        };
        Ok(self.call(ask).await??)
    }

    /// Begins to copy files of a job to this machine, also after its end. The worker ends a copy of which
    /// nobody has asked for bytes for a minute. For the user of the job and admins.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] if the job is another user's; [`Error::Refused`] if there is no such rank, its
    /// node is not connected, or too many files are being copied. What is wrong with the path is in the
    /// bytes.
    pub async fn start_copy(&self, request: CopyRequest) -> Result<(), Error> {
        let ask = |to: HeadConnection| {
            let request = Box::new(request.clone());
            async move { to.service.start_copy(short_call_context(), request).await.map(Ok) }
        };
        Ok(self.call(ask).await??)
    }

    /// Bytes of a copy, a stream that `cohabit-transfer` reads; waits where there are none.
    ///
    /// # Errors
    /// As for [`Client::start_copy`]; the code is `not_found` once the copy is gone, and `unavailable` while
    /// its worker is away.
    pub async fn read_copy(&self, read: CopyRead) -> Result<CopyPiece, Error> {
        let ask =
            |to: HeadConnection| async move { to.service.read_copy(long_poll_context(), read).await.map(Ok) };
        Ok(self.call(ask).await??)
    }

    /// Ends a copy, if it goes on, and forgets it.
    ///
    /// # Errors
    /// As for [`Client::start_copy`].
    pub async fn end_copy(&self, copy: CopyId) -> Result<(), Error> {
        let ask =
            |to: HeadConnection| async move { to.service.end_copy(short_call_context(), copy).await.map(Ok) };
        Ok(self.call(ask).await??)
    }

    /// The metrics of one rank over its steps; empty if it reported none. For the user of its job and admins.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] if the job is another user's; [`Error::Refused`] if there is no such rank, or
    /// its node is not connected.
    pub async fn metrics(&self, rank: RankId) -> Result<MetricSeries, Error> {
        let ask = |to: HeadConnection| async move {
            to.service.read_metrics(short_call_context(), rank).await.map(Ok)
        };
        // A refusal is not retried here: the worker cannot be reached then, not the head.
        Ok(self.call(ask).await??)
    }
}
